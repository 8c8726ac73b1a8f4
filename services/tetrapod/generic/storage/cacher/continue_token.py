"""Continue tokens of lists, in upstream's format.

The format is the unpadded URL-safe base64 of `{"v":"meta.k8s.io/v1","rv":..,"start":..}`.

An `rv` of -1 continues inconsistently, at the current revision.
Upstream: staging/src/k8s.io/apiserver/pkg/storage/continue.go
"""

from __future__ import annotations

import base64
import binascii
import json
import posixpath
import string
from typing import Final, NamedTuple

import orjson

from tetrapod.machinery.golang.formatting import json_kind
from tetrapod.machinery.golang.json_syntax import explain

INCONSISTENT = -1
ALPHABET = frozenset(string.ascii_letters + string.digits + "-_")
_FIELDS: Final = {"v": "string", "rv": "int64", "start": "string"}


class Continuation(NamedTuple):
    """The position at which a list continues: the first key, relative to the listed prefix, and the revision.

    The revision is that of the first page, or `INCONSISTENT` (-1) for the current one.
    """

    start: str
    revision: int


def encode(continuation: Continuation) -> str:
    """Return the continue token of a position."""
    token = {"v": "meta.k8s.io/v1", "rv": continuation.revision, "start": continuation.start}
    return base64.urlsafe_b64encode(orjson.dumps(token)).rstrip(b"=").decode()


def decode(token: str) -> Continuation:
    """Parse a continue token. Raises ValueError with upstream's text."""
    try:
        return _validate(_fields(token))
    except ValueError as error:
        raise ValueError(f"invalid continue token: continue key is not valid: {error}") from None


def _fields(token: str) -> dict[str, object]:
    """Return the fields of an encoded token by their JSON names, with types as Go's encoding/json checks them.

    Fields that are null are left out, unknown ones are kept.

    Raises:
        ValueError: the token cannot be decoded, or a field has a wrong type; with Go's text, because clients see it.
    """
    data = _decode_base64(token)
    try:
        fields = json.loads(data, parse_float=_Fraction)
    except (ValueError, RecursionError) as error:
        raise ValueError(explain(data) or str(error)) from None
    if fields is None:
        return {}
    if not isinstance(fields, dict):
        raise ValueError(f"json: cannot unmarshal {_kind(fields)} into Go value of type storage.continueToken")
    for name, go_type in _FIELDS.items():
        value = fields.get(name)
        if value is not None and not _fits(value, go_type):
            raise ValueError(
                f"json: cannot unmarshal {_go_value(value, go_type)} into Go struct field continueToken.{name} of "
                f"type {go_type}"
            )
    return {name: value for name, value in fields.items() if value is not None}


class _Fraction(str):
    """A JSON number with a fraction or an exponent, in its original notation."""

    __slots__ = ()


def _fits(value: object, go_type: str) -> bool:
    if go_type == "string":
        return isinstance(value, str) and not isinstance(value, _Fraction)
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63


def _go_value(value: object, go_type: str) -> str:
    """Return Go's name of the JSON type of `value` ("array", "string", …) for an error text.

    For a number that does not fit into an integer field, the number itself is added.

    Args:
        value: the decoded value.
        go_type: the Go type of the field into which it does not fit, "string" or "int64".
    """
    kind = _kind(value)
    return f"number {value}" if kind == "number" and go_type != "string" else kind


def _kind(value: object) -> str:
    return "number" if isinstance(value, _Fraction) else json_kind(value)


def _decode_base64(token: str) -> bytes:
    for at, character in enumerate(token):
        if character not in ALPHABET:
            raise ValueError(f"illegal base64 data at input byte {at}")
    try:
        return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except binascii.Error:
        raise ValueError(f"illegal base64 data at input byte {len(token) - 1}") from None


def _validate(fields: dict[str, object]) -> Continuation:
    version, revision, start = fields.get("v", ""), fields.get("rv", 0), fields.get("start", "")
    if version != "meta.k8s.io/v1":
        raise ValueError(f"server does not recognize this encoded version {version}")
    if not isinstance(revision, int) or revision == 0:
        raise ValueError("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not isinstance(start, str) or not start:
        raise ValueError("encoded start key empty (version meta.k8s.io/v1)")
    # A token must not lead out of the prefix that the user is authorized for.
    rooted = start if start.startswith("/") else "/" + start
    if posixpath.normpath(rooted) != rooted or rooted.startswith("//"):  # normpath keeps two slashes
        raise ValueError(start)
    return Continuation(rooted[1:], max(revision, INCONSISTENT))
