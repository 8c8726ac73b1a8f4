"""Path elements: the encoding of one step into an object in `fieldsV1`, their order, and their form in messages.

Field sets are kept in their wire form (see `fieldset.py`), so a path element is a text:

- `f:NAME` is a field.
- `k:{…}` is the element of a list that has these keys.
- `v:VALUE` is the element of a set that has this value.
- `i:N` is the element of a list at this index.
- `.` is the containing element itself.

Upstream: sigs.k8s.io/structured-merge-diff/fieldpath (element.go, serialize-pe.go) and value/value.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

import orjson

from tetrapod.machinery.boundedcache import bounded
from tetrapod.machinery.golang.floats import go_float
from tetrapod.machinery.golang.quoting import go_quote

SELF: Final = "."
_plain = re.compile(r"[ !#-%'-;=?-\[\]-~]*").fullmatch
"""Matches strings that JSON contains unescaped: printable ASCII except quotes, backslashes and the characters of
HTML.
"""
_HTML: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def value_element(value: Any) -> str:
    """Return the path element of a value in a set: `v:VALUE`."""
    if value.__class__ is str and _plain(value):
        return f'v:"{value}"'
    return "v:" + scalar_json(value)


def key_element(fields: Iterable[tuple[str, Any]]) -> str:
    """Return the path element of a list element with keys: `k:{…}`.

    Args:
        fields: the names and values of the keys, sorted by name.
    """
    return "k:{" + ",".join(f'"{name}":{scalar_json(value)}' for name, value in fields) + "}"


def scalar_json(value: Any) -> str:
    """Return the JSON text of a value, usually a scalar, as Go encodes it.

    HTML characters are escaped, keys are sorted, and floats are formatted as by json-iterator.
    """
    if isinstance(value, str):
        return f'"{value}"' if _plain(value) else orjson.dumps(value).decode().translate(_HTML)
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 1e21:
            return str(int(value))
        text = repr(value)  # exponents have at least two digits, as in Go
        return format(Decimal(text), "f") if 1e-6 <= abs(value) < 1e21 else text
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode().translate(_HTML)


@bounded(count=16_384, size=4 << 20)
def canonical(element: str) -> str | None:
    """Return the canonical spelling of a path element of a client's `fieldsV1`, or None if its kind is unknown.

    Raises:
        ValueError: the text is not a path element.
    """
    kind, text = element[:2], element[2:]
    if len(element) < 2:
        raise ValueError("key must be 2 characters long:")
    if kind[1] != ":":
        raise ValueError(f"missing colon: {element}")
    match kind:
        case "f:":
            return element
        case "v:":
            return value_element(orjson.loads(text))
        case "k:":
            fields = orjson.loads(text)
            if not isinstance(fields, dict):
                raise ValueError(f"not an object: {element}")
            return key_element(sorted(fields.items()))
        case "i:":
            return f"i:{int(text)}"
        case _:
            return None


@bounded(count=16_384, size=4 << 20)
def order(element: str) -> tuple[Any, ...]:
    """Return the sort key of a path element among its siblings.

    Fields come first, then keys, values and indexes; numbers are sorted by size. The tuple is flat, because comparing
    nested ones takes three times as long.
    """
    kind, text = element[:2], element[2:]
    match kind:
        case ".":
            return (0,)
        case "f:":
            return (1, text)
        case "k:":
            fields = sorted(orjson.loads(text).items())
            return (2, *(part for name, value in fields for part in (name, *_value_order(value))))
        case "v:":
            return (3, *_value_order(orjson.loads(text)))
        case _:
            return (4, int(text))


def _value_order(value: Any) -> tuple[int, Any]:
    match value:
        case bool():
            return (2, value)
        case int() | float():
            return (0, value)
        case str():
            return (1, value)
        case list():
            return (3, tuple(map(_value_order, value)))
        case dict():
            return (4, tuple((k, _value_order(value[k])) for k in sorted(value)))
        case _:
            return (5, 0)


@bounded(count=16_384, size=4 << 20)
def show(element: str) -> str:
    """Return a path element as messages show it: `.spec`, `[name="c"]`, `[="x"]`, `[0]`."""
    kind, text = element[:2], element[2:]
    match kind:
        case "f:":
            return f".{text}"
        case "k:":
            return (
                "["
                + ",".join(f"{name}={_show_value(value)}" for name, value in sorted(orjson.loads(text).items()))
                + "]"
            )
        case "v:":
            return f"[={_show_value(orjson.loads(text))}]"
        case _:
            return f"[{text}]"


def _show_value(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return go_float(value)
        case str():
            return go_quote(value)
        case list():
            return "[" + ",".join(map(_show_value, value)) + "]"
        case dict():
            return "".join(f"{k}={_show_value(v)}" for k, v in value.items())
        case _:
            return str(value)


def show_path(path: Iterable[str]) -> str:
    """Return a path as messages show it: `.spec.containers[name="c"].image`."""
    return "".join(map(show, path))
