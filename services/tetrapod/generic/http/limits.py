"""Limits of a request's head, which is parsed before authentication.

Go's only limit is a megabyte for the whole head, and parses one in milliseconds. These are stricter, and far beyond
what clients send:

- paths: names are at most 253 characters; a path behind a `proxy` subresource rarely has some kilobytes.
- queries: the command of an exec is in the query, often a script of tens of kilobytes; selectors have some kilobytes.
- headers: bearer tokens and SPNEGO tickets may have tens of kilobytes, cookies some.
- header counts: front proxies and impersonating clients send a header for each group of a user; directories give a
  thousand at most.
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.http.request import HeaderList

MAX_HEAD: Final = 512 << 10
MAX_PATH: Final = 16 << 10
MAX_QUERY: Final = 256 << 10
MAX_HEADER: Final = 64 << 10
MAX_HEADERS: Final = 4096
MAX_AROUND_BODY: Final = 64 << 10
"""The limit of trailers, and of chunk extensions between two bytes of a body."""
WITHIN_LIMITS: Final = min(MAX_PATH, 4 * MAX_HEADERS)
"""A head of so many bytes exceeds none of the limits: a header has four bytes at least."""


def excess(target: bytes, headers: HeaderList) -> tuple[int, str] | None:
    """Return the status code (414 or 431) and the message for the first limit that a request exceeds, or None."""
    path, _, query = target.partition(b"?")
    if len(path) > MAX_PATH:
        return 414, f"the request's path is longer than {MAX_PATH} bytes"
    if len(query) > MAX_QUERY:
        return 414, f"the request's query is longer than {MAX_QUERY} bytes"
    if len(headers) > MAX_HEADERS:
        return 431, f"the request has more than {MAX_HEADERS} headers"
    if any(len(name) + len(value) > MAX_HEADER for name, value in headers):
        return 431, f"a header of the request is longer than {MAX_HEADER} bytes"
    return None
