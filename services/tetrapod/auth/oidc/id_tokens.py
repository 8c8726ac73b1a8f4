"""The claims of an ID token that OpenID Connect defines, decoded with the rules and error texts of go-oidc.

Go decodes the claims in the order of the token. Claims of the wrong type are reported by the first of them, unless the
audience or a time is invalid, which ends the decoding.

Upstream: github.com/coreos/go-oidc/oidc.go, idToken.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Final

from tetrapod.auth.oidc.claims import BadClaim, string_of, type_mismatch
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object

_STRINGS: Final = ("iss", "sub", "nonce", "at_hash")
_TIMES: Final = ("exp", "iat", "nbf")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)


@dataclass(slots=True)
class IdToken:
    """The claims of an ID token that are checked.

    Attributes:
        issuer: the claim `iss`; "" if it is missing.
        audience: the claim `aud`; [] if it is missing.
        times: the claims `exp`, `iat` and `nbf` in whole seconds since the epoch. Missing claims are not in it.
        claim_names: the source of each distributed claim.
        claim_sources: the sources.
    """

    issuer: str = ""
    audience: list[str] = field(default_factory=list)
    times: dict[str, float] = field(default_factory=dict)
    claim_names: dict[str, str] = field(default_factory=dict)
    claim_sources: Object = field(default_factory=dict)


def decode_id_token(claims: Object) -> IdToken:
    """Return the decoded claims of a token.

    Raises:
        BadClaim: a claim has the wrong type.
    """
    token = IdToken()
    first_error = ""
    for name, value in claims.items():
        if name == "aud":
            token.audience = _audience(value)
        elif name in _TIMES and (value is not None or name != "nbf"):
            token.times[name] = _seconds(name, value)
        else:
            try:
                _decode(token, name, value)
            except BadClaim as error:
                first_error = first_error or str(error)
    if first_error:
        raise BadClaim(first_error)
    return token


def _decode(token: IdToken, name: str, value: Any) -> None:
    if name in _STRINGS:
        text = string_of(value, f"struct field idToken.{name}")
        if name == "iss":
            token.issuer = text
    elif name == "_claim_names":
        sources = _map(name, value, "map[string]string")
        token.claim_names = {
            claim: string_of(source, f"struct field idToken.{name}") for claim, source in sources.items()
        }
    elif name == "_claim_sources":
        token.claim_sources = _map(name, value, "map[string]oidc.claimSource")
        for source in token.claim_sources.values():
            members = _map(name, source, "oidc.claimSource")
            for member in ("endpoint", "access_token"):
                string_of(members.get(member), f"struct field claimSource.{name}.{member}")


def _map(name: str, value: Any, go_type: str) -> Object:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadClaim(type_mismatch(value, f"struct field idToken.{name} of type {go_type}"))
    return value


def _audience(value: Any) -> list[str]:
    """Return the claim `aud`, a string or a list of strings, as a list.

    Raises:
        BadClaim: it has another type.
    """
    if value is None or isinstance(value, str):
        return [value or ""]
    if not isinstance(value, list):
        raise BadClaim(type_mismatch(value, "struct field idToken.aud of type []string"))
    return [string_of(item, "struct field idToken.aud") for item in value]


def _seconds(name: str, value: Any) -> float:
    """Return a time in whole seconds since the epoch. A string with a number is accepted too.

    Raises:
        BadClaim: it is neither a number nor a string with one, or is too large.
    """
    if value is None:
        raise BadClaim('strconv.ParseFloat: parsing "": invalid syntax')
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value):
            quoted = go_quote(go_quote(value))
            raise BadClaim(f"json: invalid number literal, trying to unmarshal {quoted} into Number")
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadClaim(type_mismatch(value, f"struct field idToken.{name} of type json.Number"))
    if not math.isfinite(value) or (abs(value) >= 1 << 63 and name != "iat"):  # upstream does not use iat
        raise BadClaim(f"json: cannot unmarshal number into Go struct field idToken.{name} of type float64")
    return math.trunc(value)
