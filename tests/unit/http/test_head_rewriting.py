"""Tests of requests that are rewritten because llhttp rejects them."""

from __future__ import annotations

import pytest

from tetrapod.generic.http.head_validation import escape_target, replace_method


def test_an_unknown_method_is_replaced_by_get() -> None:
    assert replace_method(b"BREW /pot HTTP/1.1\r\n\r\n") == ("BREW", b"GET /pot HTTP/1.1\r\n\r\n")


@pytest.mark.parametrize("data", [b"", b"GET", b"B(W / HTTP/1.1\r\n", b" / HTTP/1.1\r\n"])
def test_a_method_that_is_not_a_token_is_not_replaced(data: bytes) -> None:
    assert replace_method(data) is None


def test_bytes_beyond_ascii_are_escaped_in_the_first_line_only() -> None:
    assert escape_target(b"GET /\xc3\xa4 HTTP/1.1\r\nX: \xc3\r\n\r\n") == b"GET /%C3%A4 HTTP/1.1\r\nX: \xc3\r\n\r\n"


@pytest.mark.parametrize("data", [b"GET /a HTTP/1.1\r\n\r\n", b"GET /\xc3\xa4 HTTP/1.1"])
def test_a_line_that_is_ascii_or_incomplete_is_not_escaped(data: bytes) -> None:
    assert escape_target(data) is None
