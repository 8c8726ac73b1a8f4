"""Validation errors that name the field: what strategies return and a 422 lists.

Follows k8s.io/apimachinery/pkg/util/validation/field (errors.go, path.go). A path is a plain string
(`spec.containers[0].name`); `child`, `index` and `key` write its parts as upstream does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from tetrapod.machinery.gofloat import go_float
from tetrapod.machinery.gonumbers import as_go_writes

_OMITTED: Final = object()
"""The bad value of an error that shows none."""


def child(path: str, *names: str) -> str:
    return ".".join((path, *names)) if path else ".".join(names)


def index(path: str, i: int) -> str:
    return f"{path}[{i}]"


def key(path: str, name: str) -> str:
    return f"{path}[{name}]"


@dataclass(frozen=True, slots=True)
class FieldError:
    """One complaint about one field; `type` is the upstream ErrorType, used as the cause's reason."""

    type: str
    field: str
    detail: str
    value: Any = _OMITTED

    def body(self) -> str:
        """The text of a cause: everything but the field."""
        text = _TITLES[self.type]
        if self.value is not _OMITTED and self.type not in _WITHOUT_VALUE:
            text = f"{text}: {format_value(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field}: {self.body()}"


def distinct(errors: list[FieldError]) -> list[FieldError]:
    """Each complaint once, in its first place (upstream: ErrorList.ToAggregate)."""
    return list({(e.type, str(e)): e for e in errors}.values())


def aggregate(errors: list[FieldError]) -> str:
    """All of them in one text, as upstream's Aggregate prints several errors."""
    texts = [str(error) for error in distinct(errors)]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


_TITLES: Final = {
    "FieldValueNotFound": "Not found",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "InternalError": "Internal error",
    "FieldValueTypeInvalid": "Invalid value",
}
_WITHOUT_VALUE: Final = frozenset({"FieldValueRequired", "FieldValueForbidden", "FieldValueTooLong", "InternalError"})


def format_value(value: Any) -> str:
    """A bad value as upstream prints it: strings quoted as Go's %q, objects as JSON, null for nil."""
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, float):
        return go_float(value)
    return as_go_writes(orjson.dumps(value)).decode().translate(_HTML)


_HTML: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""Go's JSON can stand in HTML."""


def go_quote(text: str) -> str:
    """Quote as Go's strconv.Quote: printable runes stay, control characters are escaped."""
    out = []
    for char in text:
        if char in '"\\':
            out.append("\\" + char)
        elif char.isprintable():
            out.append(char)
        elif char in _SHORT_ESCAPES:
            out.append(_SHORT_ESCAPES[char])
        elif (code := ord(char)) < 0x80:
            out.append(f"\\x{code:02x}")
        elif 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8, kept by surrogateescape
            out.append(f"\\x{code - 0xDC00:02x}")
        elif code < 0x10000:
            out.append(f"\\u{code:04x}")
        else:
            out.append(f"\\U{code:08x}")
    return '"' + "".join(out) + '"'


_SHORT_ESCAPES: Final = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueInvalid", path, detail, value)


def required(path: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueRequired", path, detail)


def forbidden(path: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueForbidden", path, detail)


def duplicate(path: str, value: Any) -> FieldError:
    return FieldError("FieldValueDuplicate", path, "", value)


def omitted(path: str, detail: str) -> FieldError:
    """As `invalid`, where upstream does not show the value."""
    return FieldError("FieldValueInvalid", path, detail)


def not_found(path: str, value: Any) -> FieldError:
    return FieldError("FieldValueNotFound", path, "", value)


def not_supported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    """An enum violation; the supported values are printed in the order given, those of a set sorted (as upstream does)."""
    ordered = sorted(supported) if isinstance(supported, (set, frozenset)) else supported
    listed = ", ".join(go_quote(v) for v in ordered)
    return FieldError("FieldValueNotSupported", path, f"supported values: {listed}" if listed else "", value)


def too_long(path: str, limit: int) -> FieldError:
    """A string over `limit` bytes; upstream shows no value since it would repeat what is too long."""
    return FieldError("FieldValueTooLong", path, f"may not be more than {limit} bytes" if limit >= 0 else "value is too long")


def too_many_characters(path: str, limit: int) -> FieldError:
    """A string over `limit` characters, where a schema counts them."""
    return FieldError("FieldValueTooLong", path, f"may not be more than {limit} {'character' if limit == 1 else 'characters'}")


def too_many(path: str, actual: int, limit: int) -> FieldError:
    return FieldError("FieldValueTooMany", path, f"must have at most {limit} {'item' if limit == 1 else 'items'}", actual)


def internal_error(path: str, message: str) -> FieldError:
    return FieldError("InternalError", path, message)
