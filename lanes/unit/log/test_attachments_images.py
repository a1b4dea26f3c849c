"""Pictures are decoded to their last pixel before anything is believed."""

from __future__ import annotations

import io
import struct
import sys
import zlib
from typing import Any

import pytest
from PIL import GifImagePlugin, Image, features

from harness.errors import UsageError
from harness.log.attachments_headers import ImageHeader
from harness.log.attachments_images import accepted_types, check_picture
from harness.log.attachments_rules import MEDIA_TYPES, Limits, Upload


def saved(image_format: str, *frames: Image.Image, **options: Any) -> bytes:
    buffer = io.BytesIO()
    frames = frames or (Image.effect_noise((60, 40), 90).convert("RGB"),)
    if len(frames) > 1:
        options.update(save_all=True, append_images=list(frames[1:]))
    frames[0].save(buffer, image_format, **options)
    return buffer.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, pixels: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")


def code_of(data: bytes, media_type: str, limits: Limits | None = None) -> str:
    try:
        check_picture(0, Upload(data, media_type), limits or Limits())
    except UsageError as error:
        return error.error_code
    return ""


def shades(count: int) -> list[Image.Image]:
    return [Image.new("RGB", (10, 10), (shade * 40, 0, 0)) for shade in range(count)]


FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP", "image/gif": "GIF"}


def test_every_type_that_this_build_decodes_is_accepted() -> None:
    assert accepted_types() == set(MEDIA_TYPES)


def test_a_type_whose_codec_was_not_built_in_is_not_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "check", lambda name: name != "webp")
    assert accepted_types() == {"image/png", "image/jpeg", "image/gif"}


def test_without_the_image_package_no_type_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert accepted_types() == frozenset()


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
def test_a_good_picture_gives_its_header(media_type: str) -> None:
    upload = Upload(saved(FORMATS[media_type]), media_type)
    assert check_picture(0, upload, Limits()) == ImageHeader(media_type, 60, 40)


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
def test_a_picture_cut_in_its_pixels_is_refused(media_type: str) -> None:
    data = saved(FORMATS[media_type])
    assert code_of(data[: len(data) * 2 // 3], media_type) == "INVALID_IMAGE"


def test_a_good_header_over_broken_pixels_is_refused() -> None:
    data = bytearray(png(100, 100, bytes(101 * 100)))
    at = data.index(b"IDAT") + 12
    data[at] ^= 0xFF
    assert (code_of(png(100, 100, bytes(101 * 100)), "image/png"), code_of(bytes(data), "image/png")) == (
        "",
        "INVALID_IMAGE",
    )


@pytest.mark.parametrize("media_type", ["image/gif", "image/webp"])
def test_every_frame_of_a_moving_picture_is_decoded(media_type: str) -> None:
    frames = [Image.effect_noise((40, 40), 90 + at).convert("RGB") for at in range(4)]
    data = saved(FORMATS[media_type], *frames)
    assert (code_of(data, media_type), code_of(data[: len(data) - 700], media_type)) == ("", "INVALID_IMAGE")


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        pytest.param(saved("PNG"), "image/jpeg", id="png-as-jpeg"),
        pytest.param(saved("JPEG"), "image/png", id="jpeg-as-png"),
        pytest.param(saved("GIF"), "image/webp", id="gif-as-webp"),
    ],
)
def test_a_picture_under_another_type_is_refused(data: bytes, media_type: str) -> None:
    assert code_of(data, media_type) == "IMAGE_TYPE_MISMATCH"


@pytest.mark.parametrize("data", [b"", b"hello", saved("BMP"), saved("TIFF")], ids=["empty", "text", "bmp", "tiff"])
def test_what_is_no_picture_of_the_four_types_is_refused(data: bytes) -> None:
    assert code_of(data, "image/png") == "INVALID_IMAGE"


def test_the_size_is_looked_at_before_anything_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes can claim any size; the claim alone is enough to refuse."""
    monkeypatch.setattr(Image, "open", lambda *_args, **_options: pytest.fail("decoded"))
    assert code_of(png(8000, 5001, b""), "image/png") == "IMAGE_TOO_MANY_PIXELS"


def test_the_limit_of_pixels_is_inclusive() -> None:
    data = saved("PNG")
    assert [code_of(data, "image/png", Limits(max_pixels=limit)) for limit in (2400, 2399)] == [
        "",
        "IMAGE_TOO_MANY_PIXELS",
    ]


def test_the_frames_of_a_moving_picture_count_together() -> None:
    data = saved("GIF", *shades(5))
    assert [code_of(data, "image/gif", Limits(max_decoded_pixels=limit)) for limit in (500, 499)] == [
        "",
        "IMAGE_TOO_MANY_PIXELS",
    ]


@pytest.mark.parametrize("image_format", ["GIF", "PNG", "WEBP"])
def test_the_frames_of_a_moving_picture_are_counted(image_format: str) -> None:
    data = saved(image_format, *shades(5))
    media_type = next(name for name, known in FORMATS.items() if known == image_format)
    assert [code_of(data, media_type, Limits(max_frames=limit)) for limit in (5, 4)] == ["", "IMAGE_TOO_MANY_FRAMES"]


def test_a_flood_of_tiny_frames_is_given_up_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = b"\x21\xf9\x04\x04\0\0\0\0\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0"
    data = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff" + frame * 20_000 + b"\x3b"
    looked_at: list[int] = []
    seek = GifImagePlugin.GifImageFile.seek

    def counted(self: GifImagePlugin.GifImageFile, at: int) -> None:
        looked_at.append(at)
        seek(self, at)

    monkeypatch.setattr(GifImagePlugin.GifImageFile, "seek", counted)
    assert (code_of(data, "image/gif"), max(looked_at)) == ("IMAGE_TOO_MANY_FRAMES", Limits().max_frames)


def test_a_phone_s_picture_with_more_pictures_behind_it_is_its_first_one() -> None:
    data = saved("MPO", *shades(2))
    with Image.open(io.BytesIO(data)) as image:
        kind = image.format
    found = check_picture(0, Upload(data, "image/jpeg"), Limits(max_decoded_pixels=100))
    assert (kind, found) == ("MPO", ImageHeader("image/jpeg", 10, 10))


def test_the_error_names_the_picture_and_holds_none_of_its_bytes() -> None:
    with pytest.raises(UsageError) as caught:
        check_picture(2, Upload(b"hello", "image/png", "dir/cat.png"), Limits())
    assert str(caught.value) == (
        "picture 3 (cat.png): the data is no PNG, JPEG, WebP or GIF picture [INVALID_IMAGE]\n"
        "  fix: open and save it anew with another program"
    )
