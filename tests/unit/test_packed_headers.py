"""Tests of the headers by which a service passes data to the aggregator: decoding them is bounded in size."""

from __future__ import annotations

import base64
import zlib

import pytest

from tetrapod.generic.http.peers import pack_header, take_out_headers
from tetrapod.generic.http.request import Response

HEADER = b"x-packed"


def test_packed_headers_are_unpacked() -> None:
    response = Response(200, [(HEADER, pack_header({"a": [1]})), (b"x", b"y"), (HEADER, pack_header("b"))])
    assert take_out_headers(response, HEADER) == [{"a": [1]}, "b"]
    assert response.headers == [(b"x", b"y")]


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"?",
        base64.b64encode(b"no zlib"),
        pack_header("cut off")[:-8],
        base64.b64encode(zlib.compress(b"no JSON")),
        base64.b64encode(zlib.compress(b" " * (65 << 20))),
    ],
    ids=["empty", "no base64", "no zlib", "cut off", "no JSON", "a bomb"],
)
def test_invalid_packed_headers_are_ignored(value: bytes) -> None:
    response = Response(200, [(HEADER, value)])
    assert take_out_headers(response, HEADER) == []
    assert response.headers == []
