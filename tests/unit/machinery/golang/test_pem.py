"""PEM blocks are found where Go's encoding/pem finds them."""

from __future__ import annotations

import pytest

from tetrapod.machinery.golang.pem import Block, blocks

ONE = b"-----BEGIN A-----\nAQI=\n-----END A-----\n"
BLOCK = Block("A", False, b"\x01\x02")
TEXTS = {
    "nothing": (b"", []),
    "one block": (ONE, [BLOCK]),
    "two blocks with text around": (b"x\n" + ONE + b"y\n" + ONE + b"z", [BLOCK, BLOCK]),
    "blocks without text between them": (ONE + ONE, [BLOCK, BLOCK]),
    "CRLF and blanks": (b"-----BEGIN A----- \t\r\n AQ\tI= \r\n-----END A----- \r\n", [BLOCK]),
    "no line break at the end": (ONE[:-1], [BLOCK]),
    "headers": (b"-----BEGIN A-----\na: b\n\nAQI=\n-----END A-----\n", [Block("A", True, b"\x01\x02")]),
    "no content": (b"-----BEGIN A-----\n-----END A-----\n", [Block("A", False, b"")]),
    "headers without content": (b"-----BEGIN A-----\na: b\n-----END A-----\n", []),
    "a beginning without an end before the block": (b"-----BEGIN B-----\nAQI=\n" + ONE, [BLOCK]),
    "an end of another type": (b"-----BEGIN A-----\nAQI=\n-----END B-----\n" + ONE, [BLOCK]),
    "another end within a block": (b"-----BEGIN A-----\nAQ\n-----END B-----\nI=\n-----END A-----\n", []),
    "text after the end": (b"-----BEGIN A-----\nAQI=\n-----END A-----x\n" + ONE, [BLOCK]),
    "text before the beginning": (b"x" + ONE, []),
    "content that is not Base64": (b"-----BEGIN A-----\nA\n-----END A-----\n" + ONE, [BLOCK]),
    "Base64 with too long padding": (b"-----BEGIN A-----\nxAQI=\n-----END A-----\n" + ONE, [BLOCK]),
    "a first line without dashes": (b"-----BEGIN A\nAQI=\n-----END A-----\n" + ONE, [BLOCK]),
    "a header that goes on behind the end": (b"-----BEGIN A-----\na: b\n-----END A: B-----\n" + ONE, []),
}


@pytest.mark.parametrize("case", TEXTS)
def test_blocks_are_those_that_go_finds(case: str) -> None:
    text, expected = TEXTS[case]
    assert blocks(text) == expected
