"""String formats of custom resources' schemas: what each accepts.

Upstream: k8s.io/kube-openapi/pkg/validation/strfmt and k8s.io/apiextensions-apiserver/pkg/apiserver/validation/formats.go.
Dashes in a format's name do not count; names that are not known are not checked.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import date
from email.utils import parseaddr
from typing import Final
from urllib.parse import urlsplit

from tetrapod.machinery.addresses import parse_cidr_sloppy, parse_sloppy
from tetrapod.machinery.duration import parse_nanoseconds
from tetrapod.machinery.names import is_dns1123_label, is_dns1123_subdomain

_HEX: Final = "[0-9a-fA-F]"
_NUMBERS: Final = {"integer": ("int32", "int64"), "number": ("float", "double")}


def known(name: str) -> bool:
    """Whether strings are checked for this format at all."""
    return name.replace("-", "") in _FORMATS


def of_type(kind: str, name: str) -> str:
    """The format of a schema of this type where it has a meaning there, else "" (upstream strips it)."""
    if not name:
        return ""
    recognized = known(name) if kind in ("", "string") else name in _NUMBERS.get(kind, ())
    return name if recognized else ""


def matches(name: str, text: str) -> bool:
    """Whether a text has a format; True for formats that are not known."""
    check = _FORMATS.get(name.replace("-", ""))
    return check is None or check(text)


def _pattern(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


def _uuid(version: str) -> Callable[[str], bool]:
    variant = "[89abAB]" + _HEX + "{3}" if version in ("4", "5") else _HEX + "{4}"
    third = version + _HEX + "{3}" if version else _HEX + "{4}"
    return _pattern(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{third}-?{variant}-?{_HEX}{{12}}")


_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_CLOCK: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+|-][0-9]{2}:[0-9]{2})", re.ASCII)


def _is_date(text: str) -> bool:
    if _DATE.fullmatch(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    day, letter, clock = text.lower().partition("t")
    match = _CLOCK.fullmatch(clock)
    if not letter or match is None or not _is_date(day):
        return False
    return int(match[1]) <= 23 and int(match[2]) <= 59 and int(match[3]) <= 59


_AMOUNT: Final = re.compile(r"([0-9]+)[ \t\n\f\r]*([A-Za-zµ]+)")
_UNITS: Final = frozenset({"ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"})
_SPELLED_UNITS: Final = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")


def _is_duration(text: str) -> bool:
    """Go's, or with an amount of some unit anywhere in it (upstream: strfmt/duration.go of kube-openapi)."""
    try:
        parse_nanoseconds(text)
    except ValueError:
        amounts = _AMOUNT.findall(text)
        units = [unit.lower() for _, unit in amounts]
        return all(int(number) < 1 << 63 for number, _ in amounts) and any(
            unit in _UNITS or unit.startswith(_SPELLED_UNITS) for unit in units
        )
    return True


def _is_email(text: str) -> bool:
    name, address = parseaddr(text)
    local, at, domain = address.rpartition("@")
    return not name and address == text and bool(at and local and domain) and " " not in text


def _is_uri(text: str) -> bool:
    """As url.ParseRequestURI: absolute, or an absolute path."""
    if not text or any(ord(char) < 0x20 or char == "\x7f" for char in text):
        return False
    if text.startswith("/"):
        return True
    scheme, colon, rest = text.partition(":")
    if not colon or re.fullmatch(r"[a-zA-Z][a-zA-Z0-9+.-]*", scheme) is None:
        return False
    try:
        host = urlsplit(text).netloc
    except ValueError:
        return False
    return " " not in host and (rest.startswith("/") or bool(rest))


def _is_ipv4(text: str) -> bool:
    return "." in text and parse_sloppy(text) is not None


def _is_ipv6(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).version == 6 and "%" not in text
    except ValueError:
        return False


def _is_cidr(text: str) -> bool:
    return parse_cidr_sloppy(text) is not None


_MAC: Final = re.compile(
    r"(?:[0-9a-fA-F]{2}([:-]))(?:[0-9a-fA-F]{2}\1){4}[0-9a-fA-F]{2}(?:(?:\1[0-9a-fA-F]{2}){2})?(?:(?:\1[0-9a-fA-F]{2}){12})?"
    r"|(?:[0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4})?(?:(?:\.[0-9a-fA-F]{4}){6})?"
)


def _is_isbn10(text: str) -> bool:
    digits = text.replace(" ", "").replace("-", "")
    if re.fullmatch(r"[0-9]{9}(?:[0-9]|X)", digits) is None:
        return False
    values = [10 if char == "X" else int(char) for char in digits]
    return sum((position + 1) * value for position, value in enumerate(values)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = text.replace(" ", "").replace("-", "")
    if re.fullmatch(r"[0-9]{13}", digits) is None:
        return False
    return sum(int(char) * (3 if position % 2 else 1) for position, char in enumerate(digits)) % 10 == 0


_CARD: Final = re.compile(
    r"(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|(?:222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"
    r"|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11}|6[27][0-9]{14})",
    re.ASCII,
)


def _is_credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    if _CARD.fullmatch(digits) is None:
        return False
    total = 0
    for position, char in enumerate(reversed(digits)):
        value = int(char) * (2 if position % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


_COLOR: Final = r"\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"
_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "bsonobjectid": _pattern(_HEX + "{24}"),
    "byte": _pattern(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "cidr": _is_cidr,
    "creditcard": _is_credit_card,
    "date": _is_date,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "email": _is_email,
    "hexcolor": _pattern(f"#?(?:{_HEX}{{3}}|{_HEX}{{6}})"),
    "hostname": _pattern(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9\-]{0,61}[a-zA-Z0-9])?)*"),
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8slongname": lambda text: not is_dns1123_subdomain(text),
    "k8sshortname": lambda text: not is_dns1123_label(text),
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "password": lambda text: True,
    "rgbcolor": _pattern(rf"rgb\({_COLOR},{_COLOR},{_COLOR}\)"),
    "ssn": _pattern(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "uri": _is_uri,
    "uuid": _uuid(""),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4"),
    "uuid5": _uuid("5"),
}
