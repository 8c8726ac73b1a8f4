"""What is wrong with an answer that does not parse, in the words of Go's net/http."""

from __future__ import annotations

import re
from typing import Final

from tetrapod.machinery.field import go_quote

_BROKEN: Final = "net/http: HTTP/1.x transport connection broken: "
_STATUS_LINE: Final = re.compile(r"HTTP/\d\.\d \S")


def malformed_head(data: bytes, fallback: str) -> str:
    """`data` is what came instead of a good status line and headers."""
    lines = data[:4096].decode("utf-8", "replace").split("\n")
    first = lines[0].removesuffix("\r")
    if not _STATUS_LINE.match(first):
        return f"{_BROKEN}malformed HTTP response {go_quote(first)}"
    code = first.split(" ")[1]
    if not (len(code) == 3 and code.isascii() and code.isdigit()):
        return f"{_BROKEN}malformed HTTP status code {go_quote(code)}"
    for line in lines[1:]:
        header = line.removesuffix("\r")
        if not header:
            break
        name, colon, value = header.partition(":")
        if not colon:
            return f"{_BROKEN}malformed MIME header: missing colon: {go_quote(header)}"
        if name.lower() == "content-length" and not value.strip().isdigit():
            return f"{_BROKEN}bad Content-Length {go_quote(value.strip())}"
    return f"{_BROKEN}{fallback}"


def malformed_body(error: str) -> str:
    return "invalid byte in chunk length" if "chunk size" in error else f"malformed HTTP response: {error}"
