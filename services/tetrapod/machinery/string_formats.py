"""The string formats of custom resources' schemas, such as `date-time` and `ipv4`.

Dashes in the name of a format are ignored. Unknown formats are not checked.

Upstream: k8s.io/kube-openapi/pkg/validation/strfmt and
k8s.io/apiextensions-apiserver/pkg/apiserver/validation/formats.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from string import ascii_letters, digits
from typing import Final

from tetrapod.machinery.golang.durations import parse_nanoseconds
from tetrapod.machinery.golang.integers import decimal_number
from tetrapod.machinery.golang.ip_addresses import parse_cidr_sloppy, parse_sloppy, parse_strict
from tetrapod.machinery.golang.mail_addresses import is_address
from tetrapod.machinery.golang.regular_expressions import compile_pattern
from tetrapod.machinery.golang.urls import request_uri_error
from tetrapod.machinery.names import is_dns1123_label, is_dns1123_subdomain

_HEX: Final = "[0-9a-fA-F]"
_BASE64: Final = (ascii_letters + digits + "+/").encode()
_OTHER_THAN_DIGITS: Final = bytes(set(range(256)) - set(digits.encode()))
_NUMBERS: Final = {"integer": ("int32", "int64"), "number": ("float", "double")}


def known(name: str) -> bool:
    """Return whether a format of this name is known, so that `matches` checks it. Dashes are ignored."""
    return name.replace("-", "") in _FORMATS


def of_type(kind: str, name: str) -> str:
    """Return the name of a format if it is known for schemas of a type, else "".

    Upstream strips unknown formats from schemas.

    Args:
        kind: the type of the schema; "" is treated as "string".
        name: the name of the format, or "".
    """
    if not name:
        return ""
    recognized = known(name) if kind in ("", "string") else name in _NUMBERS.get(kind, ())
    return name if recognized else ""


def matches(name: str, text: str) -> bool:
    """Return whether a text matches the format of a name. Unknown formats match every text."""
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
_CLOCK: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})", re.ASCII)


def _is_date(text: str) -> bool:
    if _DATE.fullmatch(text) is None:
        return False
    try:
        # Go accepts the year 0
        date.fromisoformat(text.replace("0000-", "2000-", 1) if text.startswith("0000") else text)
    except ValueError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    """Return whether a text is a date, `T`, and a time with a zone, in upper or lower case.

    As in upstream, a second `T` and the text after it are ignored, which is a bug there.
    """
    day, *clock = text.lower().split("t")
    match = _CLOCK.fullmatch(clock[0]) if clock else None
    if match is None or not _is_date(day):
        return False
    return int(match[1]) <= 23 and int(match[2]) <= 59 and int(match[3]) <= 59


_AMOUNT: Final = re.compile(r"(?<![0-9])([0-9]++)[ \t\n\f\r]*+([A-Za-zµ]+)")
"""A number and its unit. Each number is tried once, from its first digit: thousands of digits may have no unit."""
_UNITS: Final = frozenset({"ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"})
_SPELLED_UNITS: Final = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")


def _is_duration(text: str) -> bool:
    """Return whether a text is a Go duration, or contains a number with a unit.

    Upstream: kube-openapi/pkg/validation/strfmt/duration.go.
    """
    try:
        parse_nanoseconds(text)
    except ValueError:
        has_unit = False
        for match in _AMOUNT.finditer(text):  # one at a time, so that other threads can run: a text may have a million
            number, unit = match.groups()
            if decimal_number(number) >= 1 << 63:
                return False
            unit = unit.lower()
            has_unit = has_unit or unit in _UNITS or unit.startswith(_SPELLED_UNITS)
        return has_unit
    return True


_HOSTNAME: Final = (
    r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}]"
    r"(([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$"
)
"""Upstream's pattern.

It matches a single label with a dash at most at its second place, or labels before a top-level domain of at least two
letters.
"""


def _is_hostname(text: str) -> bool:
    encoded = text.encode()
    return (
        len(encoded) <= 255
        and all(len(label) <= 63 for label in encoded.split(b"."))
        and compile_pattern(_HOSTNAME).search(text) is not None
    )


def _is_uri(text: str) -> bool:
    return not request_uri_error(text)


def _is_ipv4(text: str) -> bool:
    return "." in text and parse_sloppy(text) is not None


def _is_ipv6(text: str) -> bool:
    return ":" in text and parse_strict(text) is not None


def _is_cidr(text: str) -> bool:
    return parse_cidr_sloppy(text) is not None


_MAC: Final = re.compile(
    rf"{_HEX}{{2}}(?:([:-]){_HEX}{{2}}(?:\1{_HEX}{{2}})*|{_HEX}*|{_HEX}{{2}}(?:\.{_HEX}{{4}})+)", re.ASCII
)


def _is_mac(text: str) -> bool:
    """Return whether a text is a MAC address of 6, 8 or 20 bytes.

    The text has pairs of digits, groups of four digits between dots, or digits only.
    """
    return _MAC.fullmatch(text) is not None and len(re.sub("[:.-]", "", text)) in (12, 16, 40)


def _is_base64(text: str) -> bool:
    """Return whether a text is Base64 with padding, and not empty.

    Python's regular expressions take a tenth of a second for 3 MB, in which no other thread runs.
    """
    if not text or len(text) % 4 or not text.isascii():
        return False
    return not text.encode().removesuffix(b"=").removesuffix(b"=").translate(None, _BASE64)


def _is_isbn10(text: str) -> bool:
    number = text.replace(" ", "").replace("-", "")
    if re.fullmatch(r"[0-9]{9}(?:[0-9]|X)", number) is None:
        return False
    values = [10 if char == "X" else int(char) for char in number]
    return sum((position + 1) * value for position, value in enumerate(values)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    number = text.replace(" ", "").replace("-", "")
    if re.fullmatch(r"[0-9]{13}", number) is None:
        return False
    return sum(int(char) * (3 if position % 2 else 1) for position, char in enumerate(number)) % 10 == 0


_CARD: Final = re.compile(
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}"
    r"|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)


def _is_credit_card(text: str) -> bool:
    number = text.encode("ascii", "ignore").translate(None, _OTHER_THAN_DIGITS).decode()
    if _CARD.fullmatch(number) is None:
        return False
    total = 0
    for position, char in enumerate(reversed(number)):
        value = int(char) * (2 if position % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


_COLOR: Final = r"\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"
_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "bsonobjectid": _pattern(_HEX + "{24}"),
    "byte": _is_base64,
    "cidr": _is_cidr,
    "creditcard": _is_credit_card,
    "date": _is_date,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "email": is_address,
    "hexcolor": _pattern(f"#?(?:{_HEX}{{3}}|{_HEX}{{6}})"),
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8slongname": lambda text: not is_dns1123_subdomain(text),
    "k8sshortname": lambda text: not is_dns1123_label(text),
    "mac": _is_mac,
    "password": lambda text: True,
    "rgbcolor": _pattern(rf"rgb\({_COLOR},{_COLOR},{_COLOR}\)"),
    "ssn": _pattern(r"\d{3}[- ]\d{2}[- ]\d{4}"),  # always eleven characters
    "uri": _is_uri,
    "uuid": _uuid(""),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4"),
    "uuid5": _uuid("5"),
}
