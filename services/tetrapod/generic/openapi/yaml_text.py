"""The YAML texts that gnostic's Any messages contain: extensions, defaults and enum values in protocol buffers.

Lists and maps are in block style, indented as by yaml.v3. Strings are plain where YAML reads them as strings, else in
double quotes as in JSON. libyaml would take several times as long for the thousands of small values of a document.

Upstream: github.com/google/gnostic-models/compiler/helpers.go, Marshal.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from tetrapod.machinery.boundedcache import bounded
from tetrapod.machinery.serializer.yaml_scalars import resolve

_PLAIN: Final = re.compile(r"[A-Za-z/$](?:[A-Za-z0-9_./$-]|[ ,](?=[A-Za-z0-9_./$-]))*").fullmatch

_STEP: Final = 4
"""The members of a map in a map are indented by a multiple of this."""


def yaml_text(value: Any) -> str:
    """Return a JSON value as a YAML document of one value, with a final newline."""
    return f"{_lines(value, '') if isinstance(value, dict | list) and value else _scalar(value)}\n".lstrip("\n")


def _lines(value: dict[str, Any] | list[Any], indent: str) -> str:
    """Return the lines of a map or list that is not empty, each after a newline and the indentation."""
    if isinstance(value, list):
        return "".join(f"\n{indent}- {_nested(element, f'{indent}  ', first=True)}" for element in value)
    deeper = " " * ((len(indent) + _STEP) // _STEP * _STEP)
    return "".join(f"\n{indent}{_scalar(key)}:{_nested(member, deeper, first=False)}" for key, member in value.items())


def _nested(value: Any, indent: str, *, first: bool) -> str:
    """Return a value after the dash of a list (`first`), on whose line it begins, or after the colon of a map."""
    if isinstance(value, dict | list) and value:
        lines = _lines(value, indent)
        return lines[1 + len(indent) :] if first else lines
    return _scalar(value) if first else f" {_scalar(value)}"


def _scalar(value: Any) -> str:
    """Return a string, a number, a boolean, null, or an empty map or list."""
    return _string(value) if isinstance(value, str) else orjson.dumps(value).decode()


@bounded(count=1024, size=64 << 10)
def _string(text: str) -> str:
    return text if _PLAIN(text) and isinstance(resolve(text), str) else orjson.dumps(text).decode()
