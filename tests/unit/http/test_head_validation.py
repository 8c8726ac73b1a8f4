"""Tests of the validation of headers that frame a request."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tetrapod.generic.http.head_validation import framing_lines, validate_headers
from tetrapod.generic.http.http1_exchange import Connection, Http1Exchange
from tetrapod.generic.http.request import HeaderList, Request

_HOST = (b"host", b"x")
_DATE = b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"


def exchange(*headers: tuple[bytes, bytes], version: str = "1.1") -> Http1Exchange:
    request = Request("POST", "/", headers=list(headers))
    request.http_version = version
    return Http1Exchange(cast("Connection", None), request, keep_alive=True, http10=version == "1.0")


def test_length_and_expectation_are_taken_from_valid_headers() -> None:
    checked = exchange(_HOST, (b"content-length", b"12"), (b"expect", b"100-Continue"))
    assert validate_headers(checked, _DATE) is None
    assert (checked.length, checked.expects_continue) == (12, True)


def test_http_1_0_needs_no_host_and_gets_no_continue() -> None:
    checked = exchange((b"expect", b"100-continue"), version="1.0")
    assert validate_headers(checked, _DATE) is None
    assert not checked.expects_continue


@pytest.mark.parametrize(
    ("headers", "version", "status"),
    [
        ([], "1.1", b"400 Bad Request"),
        ([_HOST, _HOST], "1.1", b"400 Bad Request"),
        ([(b"host", b"a b")], "1.1", b"400 Bad Request"),
        ([_HOST, (b"transfer-encoding", b"gzip")], "1.1", b"501 Not Implemented"),
        (
            [_HOST, (b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"chunked")],
            "1.1",
            b"501 Not Implemented",
        ),
        ([_HOST, (b"expect", b"more")], "1.1", b"417 Expectation Failed"),
        ([_HOST], "2.0", b"505 HTTP Version Not Supported"),
    ],
)
def test_invalid_headers_are_rejected(headers: Any, version: str, status: bytes) -> None:
    rejection = validate_headers(exchange(*headers, version=version), _DATE)
    assert rejection is not None
    assert rejection.startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize(
    ("headers", "lines"),
    [
        ([_HOST], None),
        ([(b"content-length", b"0")], None),
        ([(b"content-length", b"4")], b"content-length: 4\r\n"),
        ([_HOST, (b"transfer-encoding", b"chunked")], b"transfer-encoding: chunked\r\n"),
    ],
)
def test_framing_lines_are_those_that_determine_the_length_of_a_body(headers: HeaderList, lines: bytes | None) -> None:
    assert framing_lines(headers) == lines
