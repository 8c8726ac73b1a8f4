"""Continue tokens of lists, in upstream's form: unpadded URL-safe base64 of `{"v":"meta.k8s.io/v1","rv":..,"start":..}`.

Follows k8s.io/apiserver/pkg/storage/continue.go. `rv` -1 goes on inconsistently, at the present revision.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
import string
from typing import NamedTuple

import orjson

INCONSISTENT = -1
ALPHABET = frozenset(string.ascii_letters + string.digits + "-_")


class Continuation(NamedTuple):
    """Where a list goes on: the first key, relative to the prefix that is listed, and the revision."""

    start: str
    revision: int


def encode(continuation: Continuation) -> str:
    token = {"v": "meta.k8s.io/v1", "rv": continuation.revision, "start": continuation.start}
    return base64.urlsafe_b64encode(orjson.dumps(token)).rstrip(b"=").decode()


def decode(token: str) -> Continuation:
    """Raises ValueError with upstream's text."""
    try:
        return _checked(_fields(token))
    except ValueError as error:
        raise ValueError(f"invalid continue token: continue key is not valid: {error}") from None


def _fields(token: str) -> dict[str, object]:
    data = _decoded(token)
    try:
        fields = orjson.loads(data)
    except ValueError as error:
        first = chr(data[0]) if data else ""
        if first and first not in '{["tfn-0123456789 \t\r\n':  # in upstream's words, since a client may well see them
            raise ValueError(f"invalid character '{_quoted(first)}' looking for beginning of value") from None
        raise ValueError(str(error)) from None
    if not isinstance(fields, dict):
        raise ValueError(f"cannot unmarshal {type(fields).__name__} into a continue token")
    return fields


def _decoded(token: str) -> bytes:
    for at, character in enumerate(token):
        if character not in ALPHABET:
            raise ValueError(f"illegal base64 data at input byte {at}")
    try:
        return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except binascii.Error:
        raise ValueError(f"illegal base64 data at input byte {len(token) - 1}") from None


def _quoted(character: str) -> str:
    return character if character.isprintable() and character.isascii() else f"\\u{ord(character):04x}"


def _checked(fields: dict[str, object]) -> Continuation:
    version, revision, start = fields.get("v", ""), fields.get("rv", 0), fields.get("start", "")
    if version != "meta.k8s.io/v1":
        raise ValueError(f"server does not recognize this encoded version {version}")
    if not isinstance(revision, int) or isinstance(revision, bool) or revision == 0:
        raise ValueError("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not isinstance(start, str) or not start:
        raise ValueError("encoded start key empty (version meta.k8s.io/v1)")
    # A token must not lead out of the prefix that its user may read.
    rooted = start if start.startswith("/") else "/" + start
    if posixpath.normpath(rooted) != rooted or rooted == "/":
        raise ValueError(start)
    return Continuation(rooted[1:], max(revision, INCONSISTENT))
