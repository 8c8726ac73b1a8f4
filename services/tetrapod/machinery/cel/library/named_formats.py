"""Named formats, such as `format.dns1123Label().validate(s)`. Upstream: apiserver/pkg/cel/library/format.go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tetrapod.machinery import names, string_formats
from tetrapod.machinery.cel import types
from tetrapod.machinery.cel.library.signatures import Functions
from tetrapod.machinery.cel.values import NONE, Optional, Special
from tetrapod.machinery.golang.urls import request_uri_error


class NamedFormat(Special):
    """A format that an expression can check texts with, such as `format.dns1123Label()`.

    Args:
        name: its name; formats of the same name are equal.
        check: returns the error messages for a text, or [].
        regex_size: upstream's estimate of the pattern's size, from which the cost of `validate` is computed.
    """

    cel_type = types.object_type("kubernetes.NamedFormat")

    def __init__(self, name: str, check: Callable[[str], list[str]], regex_size: int) -> None:
        self.name = name
        self.check = check
        self.regex_size = regex_size

    def equals(self, other: Any) -> bool:
        return isinstance(other, NamedFormat) and other.name == self.name


def _matching(name: str, message: str) -> Callable[[str], list[str]]:
    return lambda text: [] if string_formats.matches(name, text) else [message]


def _uri(text: str) -> list[str]:
    message = request_uri_error(text)
    return [message] if message else []


_FORMATS: Final = {
    "dns1123Label": NamedFormat("DNS1123Label", lambda s: names.name_is_dns_label(s, False), 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", lambda s: names.name_is_dns_subdomain(s, False), 60),
    "dns1035Label": NamedFormat("DNS1035Label", lambda s: names.name_is_dns1035_label(s, False), 30),
    "qualifiedName": NamedFormat("QualifiedName", names.is_qualified_name, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", lambda s: names.name_is_dns_label(s, True), 30),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", lambda s: names.name_is_dns_subdomain(s, True), 60),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", lambda s: names.name_is_dns1035_label(s, True), 30),
    "labelValue": NamedFormat("LabelValue", names.is_valid_label_value, 40),
    "uri": NamedFormat("URI", _uri, 1103),
    "uuid": NamedFormat("uuid", _matching("uuid", "does not match the UUID format"), 70),
    "byte": NamedFormat("byte", _matching("byte", "invalid base64"), 84),
    "date": NamedFormat("date", _matching("date", "invalid date"), 71),
    "datetime": NamedFormat("datetime", _matching("datetime", "invalid datetime"), 71),
}


def _validate(named: NamedFormat, text: str) -> Optional:
    messages = named.check(text)
    return Optional(messages) if messages else NONE


def _named(name: str) -> Optional:
    return Optional(_FORMATS[name]) if name in _FORMATS else NONE


def _constant(named: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: named


FUNCTIONS: Final[Functions] = {
    "validate": [((NamedFormat, str), _validate)],
    "format.named": [((str,), _named)],
    **{f"format.{name}": [((), _constant(named))] for name, named in _FORMATS.items()},
}
