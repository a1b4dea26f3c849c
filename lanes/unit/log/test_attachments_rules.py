"""What is looked at before a picture is decoded, and what references and names may be."""

from __future__ import annotations

import base64
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import AttachmentError, UsageError
from harness.log.attachments_rules import (
    MAX_NAME_CHARACTERS,
    MEDIA_TYPES,
    Limits,
    Upload,
    attachment_id_of,
    check_batch,
    check_reference,
    digest_in,
    display_name,
    parse_base64,
)
from harness.model.messages import AttachmentRef

PNG = frozenset({"image/png"})
LIMITS = Limits(max_images=2, max_batch_bytes=10, max_image_bytes=6)


def upload(size: int = 1, media_type: str = "image/png", name: str | None = None) -> Upload:
    return Upload(b"x" * size, media_type, name)


def test_the_defaults_are_those_of_the_specification() -> None:
    assert (Limits(), MEDIA_TYPES) == (
        Limits(20, 100 * 1024 * 1024, 5 * 1024 * 1024, 40_000_000),
        ("image/png", "image/jpeg", "image/webp", "image/gif"),
    )


@pytest.mark.parametrize(
    ("batch", "code"),
    [
        pytest.param([], None, id="empty"),
        pytest.param([upload(6), upload(4)], None, id="at-every-limit"),
        pytest.param([upload(), upload(), upload()], "TOO_MANY_IMAGES", id="count"),
        pytest.param([upload(5), upload(6)], "IMAGES_TOO_LARGE", id="bytes-together"),
        pytest.param([upload(7)], "IMAGE_TOO_LARGE", id="bytes-of-one"),
        pytest.param([upload(), upload(media_type="image/gif")], "UNSUPPORTED_IMAGE_TYPE", id="type"),
        pytest.param([upload(media_type="IMAGE/PNG")], "UNSUPPORTED_IMAGE_TYPE", id="type-in-capitals"),
        pytest.param([upload(media_type="image/png;q=1")], "UNSUPPORTED_IMAGE_TYPE", id="type-with-parameter"),
        pytest.param([upload(9, "x"), upload(9), upload(9)], "TOO_MANY_IMAGES", id="count-before-bytes"),
        pytest.param([upload(9, "x"), upload(9)], "IMAGES_TOO_LARGE", id="bytes-before-types"),
        pytest.param([upload(7), upload(1, "x")], "UNSUPPORTED_IMAGE_TYPE", id="types-before-single-bytes"),
    ],
)
def test_a_batch_is_refused_for_the_first_thing_in_order(batch: list[Upload], code: str | None) -> None:
    try:
        check_batch(batch, LIMITS, PNG)
        found = None
    except UsageError as error:
        found = error.error_code
    assert found == code


def test_without_the_image_package_the_fix_names_it() -> None:
    with pytest.raises(UsageError) as caught:
        check_batch([upload(name="a/cat.png")], LIMITS, frozenset())
    assert str(caught.value) == (
        "picture 1 (cat.png): no pictures are taken here, the package that reads them is not installed "
        '[UNSUPPORTED_IMAGE_TYPE]\n  fix: python -m pip install "five-lanes[images]"'
    )


def test_an_error_shows_nothing_of_a_picture_s_bytes() -> None:
    assert "secret" not in repr(Upload(b"secret", "image/png"))


# references ----------------------------------------------------------------------------------------------------------


def test_A01_an_id_is_the_digest_of_the_bytes_and_reads_back() -> None:
    assert (attachment_id_of(b""), digest_in(attachment_id_of(b""))) == (
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    )


GOOD = attachment_id_of(b"")


@pytest.mark.parametrize(
    "reference",
    [
        pytest.param(AttachmentRef("", "image/png", 1, 1, 1), id="no-id"),
        pytest.param(AttachmentRef(GOOD[:-1], "image/png", 1, 1, 1), id="short"),
        pytest.param(AttachmentRef(GOOD.upper(), "image/png", 1, 1, 1), id="capitals"),
        pytest.param(AttachmentRef(f"{GOOD}\n", "image/png", 1, 1, 1), id="newline"),
        pytest.param(AttachmentRef(f"sha256:{'../' * 21}x", "image/png", 1, 1, 1), id="path"),
        pytest.param(AttachmentRef(GOOD, "image/svg+xml", 1, 1, 1), id="type"),
        pytest.param(AttachmentRef(GOOD, "image/png", 0, 1, 1), id="no-bytes"),
        pytest.param(AttachmentRef(GOOD, "image/png", 1, 0, 1), id="no-width"),
        pytest.param(AttachmentRef(GOOD, "image/png", 1, 1, -1), id="negative-height"),
    ],
)
def test_a_reference_no_store_gave_is_refused(reference: AttachmentRef) -> None:
    with pytest.raises(AttachmentError) as caught:
        check_reference(reference)
    assert caught.value.error_code == "INVALID_ATTACHMENT_REF"


# base64 --------------------------------------------------------------------------------------------------------------


@given(st.binary(max_size=40))
def test_canonical_base64_reads_back(data: bytes) -> None:
    assert parse_base64(base64.b64encode(data).decode(), "block 1") == data


@pytest.mark.parametrize(
    "text", ["AB==", "AAB=", "A", "AAAA=", "AA AA", "AA\nAA", "AA-_", "AA=A", "====", "Ａ" * 4, "AAAA\n"]
)
def test_base64_that_is_not_canonical_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_base64(text, "session/prompt, block 2")
    assert (caught.value.error_code, caught.value.where, text in str(caught.value).split("[")[0][40:]) == (
        "INVALID_IMAGE_BASE64",
        "session/prompt, block 2",
        False,
    )


# names ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (None, None),
        ("", None),
        ("cat.png", "cat.png"),
        ("/home/someone/cat.png", "cat.png"),
        ("C:\\Users\\someone\\cat.png", "cat.png"),
        ("a/b\\c.png", "c.png"),
        ("folder/", "folder"),
        ("..", None),
        ("a/..", None),
        ("\x1b[31mred\x00\x7f\x9b.png", "[31mred.png"),
        ("a\u2028b\u202egpj.exe", "abgpj.exe"),
        ("  ", None),
        ("\n\t", None),
        ("👩\u200d🔬.png", "👩\u200d🔬.png"),
        ("x" * 300, "x" * MAX_NAME_CHARACTERS),
    ],
)
def test_a_display_name_is_the_last_part_without_what_moves_a_terminal(name: str | None, shown: str | None) -> None:
    assert display_name(name) == shown


@given(st.text(max_size=400))
def test_a_display_name_of_any_text_is_short_plain_and_settled(name: str) -> None:
    shown = display_name(name)
    if shown is not None:
        assert (len(shown) <= MAX_NAME_CHARACTERS, {"/", "\\"} & set(shown), display_name(shown)) == (
            True,
            set(),
            shown,
        )
        assert "Cc" not in {unicodedata.category(letter) for letter in shown}
