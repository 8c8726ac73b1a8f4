"""Formatting of decoded JSON values like Go's `%v`, `%#v`, `%s` and `%T`.

Clients and tests match such texts (`map: map[image:i:2] does not contain declared merge key: name`), so the errors of
patches and applies use these functions.
"""

from __future__ import annotations

from typing import Any

from tetrapod.machinery.golang.floats import go_float
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.sorting import sort_large


class GoValue:
    """A value that JSON cannot express, with the text that Go prints for it and its Go type.

    Args:
        text: the text.
        type: the name of the Go type.
    """

    def __init__(self, text: str, type: str) -> None:
        self.text = text
        self.type = type

    def __str__(self) -> str:
        return self.text


def plain(value: Any) -> str:
    """Format a decoded JSON value like Go's `%v`: maps sorted by key, strings without quotes, null as `<nil>`."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case float():
            return go_float(value)
        case dict():
            return f"map[{' '.join(f'{k}:{plain(value[k])}' for k in sort_large(value))}]"
        case list():
            return f"[{' '.join(map(plain, value))}]"
        case _:
            return str(value)


def as_text(value: Any) -> str:
    """Format a decoded JSON value like Go's `%s`, which shows other types than strings as `%!s(int64=1)`."""
    match value:
        case None:
            return "%!s(<nil>)"
        case str():
            return value
        case dict():
            return f"map[{' '.join(f'{k}:{as_text(value[k])}' for k in sort_large(value))}]"
        case list():
            return f"[{' '.join(map(as_text, value))}]"
        case _:
            return f"%!s({type_name(value)}={plain(value)})"


def syntax(value: Any) -> str:
    """Format a decoded JSON value like Go's `%#v`: as Go source text."""
    match value:
        case None:
            return "interface {}(nil)"
        case bool():
            return "true" if value else "false"
        case float():
            return go_float(value)
        case str():
            return go_quote(value)
        case dict():
            return (
                "map[string]interface {}{"
                + ", ".join(f"{go_quote(k)}:{syntax(value[k])}" for k in sort_large(value))
                + "}"
            )
        case list():
            return "[]interface {}{" + ", ".join(map(syntax, value)) + "}"
        case _:
            return str(value)


def type_name(value: Any) -> str:
    """Return the Go type of a decoded JSON value, like `%T`: `string`, `int64`, `map[string]interface {}` and so on."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "float64"
        case str():
            return "string"
        case dict():
            return "map[string]interface {}"
        case GoValue():
            return value.type
        case _:
            return "[]interface {}"


def json_kind(value: Any) -> str:
    """Return the name of a JSON value's type in errors of Go's encoding/json: "number", "object" and so on."""
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case dict():
            return "object"
        case _:
            return "array"
