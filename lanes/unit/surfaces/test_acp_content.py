"""What a prompt may hold: a closed union, canonical base64, and text that says something."""

from __future__ import annotations

import base64
import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.model.messages import AttachmentRef, ImageBlock, TextBlock
from harness.surfaces.acp.content import Link, Picture, Words, compose, decode_base64, read_prompt

pytestmark = pytest.mark.claim("acp.admission")


GIF = {"type": "image", "mimeType": "image/gif", "data": "R0lG"}
REFERENCE = AttachmentRef("sha256:" + "0" * 64, "image/gif", 1, 1, 1)


@pytest.mark.parametrize(
    "text",
    [
        "AB==",
        "QUI",
        "QUI= ",
        " QUI=",
        "QU I=",
        "QUI=\n",
        "QU-_",
        "====",
        "A===",
        "QUJD=",
        "Q=I=",
        "QUI\u003d\u00a0",
        "é",
    ],
    ids=repr,
)
def test_AC04_base64_that_is_not_canonical_is_refused(text: str) -> None:
    assert decode_base64(text) is None


@given(st.binary(max_size=60))
def test_AC04_what_an_encoder_writes_is_read(data: bytes) -> None:
    assert decode_base64(base64.b64encode(data).decode()) == data


@settings(derandomize=True)
@given(st.text(string.ascii_letters + string.digits + "+/=-_ \n", max_size=12))
def test_AC04_whatever_is_read_is_what_an_encoder_writes(text: str) -> None:
    data = decode_base64(text)
    assert data is None or base64.b64encode(data).decode() == text


@pytest.mark.parametrize("mime", ["image/PNG", "image/svg+xml", "image/png; q=1", " image/png", "image/jpg", ""])
def test_AC05_the_list_of_types_is_exact(mime: str) -> None:
    with pytest.raises(UsageError, match=r"\[0\]\.mimeType|mimeType"):
        read_prompt([{**GIF, "mimeType": mime}], may_hold_pictures=True)


@pytest.mark.parametrize(
    ("block", "where"),
    [
        ({"type": "audio", "data": "SECRET", "mimeType": "audio/wav"}, "prompt[1]"),
        ({"type": "resource", "resource": {"uri": "file:///x", "text": "SECRET"}}, "prompt[1]"),
        ({"type": "hologram", "data": "SECRET"}, "prompt[1]"),
        ({"type": 5}, "prompt[1]"),
        ({}, "prompt[1]"),
        ("SECRET", "prompt[1]"),
        (None, "prompt[1]"),
        ({"type": "text"}, "prompt[1].text"),
        ({"type": "text", "text": None}, "prompt[1].text"),
        ({"type": "resource_link", "name": "n"}, "prompt[1].uri"),
        ({"type": "resource_link", "uri": "u"}, "prompt[1].name"),
        ({"type": "image", "mimeType": "image/gif"}, "prompt[1].data"),
        ({"type": "image", "mimeType": "image/gif", "data": "SECRET!"}, "prompt[1].data"),
        ({"type": "image", "data": "R0lG"}, "prompt[1].mimeType"),
    ],
)
def test_AC06_a_block_that_is_not_known_is_refused_by_its_place_and_never_repeated(block: Any, where: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_prompt([{"type": "text", "text": "a"}, block], may_hold_pictures=True)
    assert (raised.value.where, "SECRET" in str(raised.value)) == (where, False)


@pytest.mark.parametrize("blocks", [None, "text", {}, 5])
def test_a_prompt_that_is_no_list_is_refused(blocks: Any) -> None:
    with pytest.raises(UsageError):
        read_prompt(blocks, may_hold_pictures=True)


def test_AC02_a_picture_that_was_not_advertised_is_refused() -> None:
    with pytest.raises(UsageError, match="not advertised"):
        read_prompt([GIF], may_hold_pictures=False)


def test_AC08_text_is_merged_and_pictures_keep_their_place() -> None:
    parts = (Words("a"), Words("b"), Picture("image/gif", b"x"), Words(""), Link("n", 'u"'), Words("c"))
    assert compose(parts, [REFERENCE]) == (
        TextBlock("ab"),
        ImageBlock(REFERENCE),
        TextBlock('\n[resource_link name="n" uri="u\\""]\nc'),
    )


@pytest.mark.parametrize("parts", [(), (Words(""),), (Words(" \n\t"), Words(" "))])
def test_a_prompt_of_nothing_is_refused(parts: tuple[Words, ...]) -> None:
    with pytest.raises(UsageError, match="empty prompt"):
        compose(parts, ())


def test_a_picture_alone_is_a_prompt() -> None:
    assert compose((Words(" "), Picture("image/gif", b"x")), [REFERENCE]) == (TextBlock(" "), ImageBlock(REFERENCE))
