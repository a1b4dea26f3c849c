"""Picture headers read without a package agree with the package that decodes."""

from __future__ import annotations

import io
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from harness.log.attachments_headers import ImageHeader, read_header

FORMS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "png": ("image/png", "PNG", {}),
    "gif": ("image/gif", "GIF", {}),
    "jpeg": ("image/jpeg", "JPEG", {}),
    "jpeg-progressive": ("image/jpeg", "JPEG", {"progressive": True, "comment": b"\xff\xc0 no frame"}),
    "jpeg-exif": ("image/jpeg", "JPEG", {"exif": b"Exif\0\0" + b"\xff\xc0" * 40}),
    "webp": ("image/webp", "WEBP", {}),
    "webp-lossless": ("image/webp", "WEBP", {"lossless": True}),
    "webp-extended": ("image/webp", "WEBP", {"exif": b"Exif\0\0"}),
    "webp-moving": ("image/webp", "WEBP", {"save_all": True, "frames": 2}),
    "gif-moving": ("image/gif", "GIF", {"save_all": True, "frames": 2}),
    "png-moving": ("image/png", "PNG", {"save_all": True, "frames": 2}),
}


def picture(form: str, width: int, height: int) -> bytes:
    _, image_format, options = FORMS[form]
    options = dict(options)
    frames = [Image.new("RGB", (width, height), (shade, 0, 0)) for shade in range(1, options.pop("frames", 1))]
    if frames:
        options["append_images"] = frames
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), (200, 10, 10)).save(buffer, image_format, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=15, deadline=None)
@given(width=st.integers(1, 700), height=st.integers(1, 40))
def test_every_form_of_picture_states_its_type_and_size(form: str, width: int, height: int) -> None:
    data = picture(form, width, height)
    with Image.open(io.BytesIO(data)) as image:
        decoded = image.size
    found = read_header(data)
    assert (found, decoded) == (ImageHeader(FORMS[form][0], width, height), (width, height))


@pytest.mark.parametrize("form", FORMS)
def test_a_header_cut_anywhere_is_no_header_or_the_whole_one(form: str) -> None:
    data = picture(form, 300, 2)
    whole = read_header(data)
    found = [read_header(data[:end]) for end in range(len(data))]
    assert ([cut for cut in found if cut not in (None, whole)], found[0], found[9]) == ([], None, None)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([b"", b"\xff\xd8", b"\xff\xd8\xff", b"GIF89a", b"RIFF1234WEBPVP8 ", b"\x89PNG\r\n\x1a\n"]),
    st.binary(),
)
def test_any_bytes_are_a_header_or_none(start: bytes, rest: bytes) -> None:
    found = read_header(start + rest)
    assert found is None or (found.width > 0 and found.height > 0)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"<svg xmlns='http://www.w3.org/2000/svg'/>", id="svg"),
        pytest.param(b"BM" + bytes(60), id="bitmap"),
        pytest.param(b"GIF89a" + struct.pack("<HH", 0, 5), id="no-width"),
        pytest.param(b"\x89PNG\r\n\x1a\n" + bytes(4) + b"IDAT" + bytes(20), id="png-without-header"),
        pytest.param(b"\xff\xd8\xff\xd9", id="jpeg-that-ends-at-once"),
        pytest.param(b"\xff\xd8\xff\xda\x00\x02" + bytes(20), id="jpeg-pixels-before-a-frame"),
        pytest.param(b"\xff\xd8\xff\xe0\x00\x00" + bytes(20), id="jpeg-segment-without-length"),
        pytest.param(b"\xff\xd8\x00\x00", id="jpeg-without-marker"),
        pytest.param(b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\0" + bytes(9), id="webp-lossless-without-its-mark"),
        pytest.param(b"RIFF\0\0\0\0WEBPVP8 " + bytes(20), id="webp-without-its-mark"),
        pytest.param(b"RIFF\0\0\0\0WEBPALPH" + bytes(20), id="webp-of-another-kind"),
    ],
)
def test_what_is_no_picture_has_no_header(data: bytes) -> None:
    assert read_header(data) is None


def test_fill_bytes_and_bare_markers_before_a_frame_are_passed_over() -> None:
    frame = b"\xff\xc0\x00\x11\x08" + struct.pack(">HH", 7, 9)
    assert read_header(b"\xff\xd8\xff\xff\xd0\xff\xff\xff" + frame[1:]) == ImageHeader("image/jpeg", 9, 7)
