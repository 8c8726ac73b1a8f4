"""Typed access to the claims of a token, with the error texts of Go's encoding/json for values of the wrong type.

Upstream: claims, stringOrArray and untrustedIssuer of plugin/pkg/authenticator/token/oidc/oidc.go; idToken of go-oidc's
oidc.go.
"""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.serializer import json as json_serializer

GOOGLE: Final = "https://accounts.google.com"
_GOOGLE_WITHOUT_SCHEME: Final = "accounts.google.com"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NOT_BASE64: Final = re.compile(r"[^A-Za-z0-9_-]")
_LIMIT: Final = 1 << 20
"""The longest token in bytes. The limit on HTTP headers is lower."""


class BadClaim(Exception):
    """The error for a claim that is missing or of the wrong type."""


def parse_object(data: bytes) -> Object:
    """Parse JSON bytes that must be an object.

    Raises:
        ValueError: they are not a JSON object; the text is Go's.
    """
    value = json_serializer.decode(data, unstructured=True).obj
    if not isinstance(value, dict):
        raise ValueError(type_mismatch(value, "value of type map[string]json.RawMessage"))
    return value


def segment(text: str) -> bytes:
    """Decode one part of a token from base64url without padding.

    Raises:
        ValueError: it is invalid base64url; the text is Go's.
    """
    if (bad := _NOT_BASE64.search(text)) is not None or len(text) % 4 == 1:
        raise ValueError(f"illegal base64 data at input byte {len(text) - 1 if bad is None else bad.start()}")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def untrusted_issuer(token: str) -> str | None:
    """Return the claim `iss` of a token without verifying the token.

    Returns:
        "" if the token names no issuer; None if it is not a JWT, is longer than 1 MiB, or `iss` is not a string.
    """
    parts = token.split(".")
    if len(parts) != 3 or len(token) > _LIMIT:
        return None
    try:
        issuer = parse_object(segment(parts[1])).get("iss")
    except ValueError:
        return None
    if issuer is None:
        return ""
    if not isinstance(issuer, str):
        return None
    return GOOGLE if issuer == _GOOGLE_WITHOUT_SCHEME else issuer


def same_issuer(configured: str, claimed: str) -> bool:
    """Return whether a token's issuer is the configured one. As in go-oidc, Google's may come without a scheme."""
    return configured == claimed or (configured == GOOGLE and claimed == _GOOGLE_WITHOUT_SCHEME)


def _go_kind(value: Any) -> str:
    """Return the JSON type of a decoded value as Go's error texts name it, such as "array"."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return {str: "string", list: "array", dict: "object"}.get(value.__class__, "null")


def type_mismatch(value: Any, into: str) -> str:
    """Return the text of Go's json.UnmarshalTypeError for a value.

    Args:
        value: the decoded value.
        into: the Go variable into which it would be decoded, with its type, such as "value of type bool".
    """
    return f"json: cannot unmarshal {_go_kind(value)} into Go {into}"


def string_of(value: Any, into: str = "value") -> str:
    """Return the value if it is a string, "" for None.

    Args:
        into: the Go variable in the error text into which the value would be decoded, such as "struct field
            idToken.iss".

    Raises:
        BadClaim: it has another type.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadClaim(type_mismatch(value, f"{into} of type string"))
    return value


def string_claim(claims: Object, name: str) -> str:
    """Return a string claim; "" if it is null.

    Raises:
        BadClaim: it is missing or has another type.
    """
    return string_of(_present(claims, name))


def bool_claim(claims: Object, name: str) -> bool:
    """Return a boolean claim; False if it is null.

    Raises:
        BadClaim: it is missing or has another type.
    """
    value = _present(claims, name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise BadClaim(type_mismatch(value, "value of type bool"))
    return value


def strings_claim(claims: Object, name: str) -> list[str]:
    """Return a claim that is a list of strings or a single string, as a list; [] if it is null.

    Raises:
        BadClaim: it is missing or has another type.
    """
    value = _present(claims, name)
    if value is None:
        return []
    if isinstance(value, list) and all(item is None or isinstance(item, str) for item in value):
        return [item or "" for item in value]
    return [string_of(value)]


def _present(claims: Object, name: str) -> Any:
    if name not in claims:
        raise BadClaim("claim not present")
    return claims[name]


def shown_time(seconds: float | None) -> str:
    """Return a time as Go prints it in UTC.

    Args:
        seconds: seconds since the epoch; None is Go's zero time.
    """
    if seconds is None:
        return "0001-01-01 00:00:00 +0000 UTC"
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return f"{seconds:.0f} s since 1970"
    fraction = f".{moment.microsecond:06d}".rstrip("0") if moment.microsecond else ""
    return f"{moment:%Y-%m-%d %H:%M:%S}{fraction} +0000 UTC"
