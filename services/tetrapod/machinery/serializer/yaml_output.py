"""Encoding of objects as YAML, as sigs.k8s.io/yaml does it. As with libyaml, lines are folded after 80 columns.

libyaml gets one event after the other. PyYAML's own encoder makes an object of each scalar before it writes the first;
those of a map of 3 MB, deallocated at once, block other threads for 300 ms.

Upstream: go.yaml.in/yaml/v2, encode.go (quoting).
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any, Final

import yaml
from yaml import events

from tetrapod.machinery.golang.floats import go_float
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.serializer.yaml_key_order import sorted_keys
from tetrapod.machinery.serializer.yaml_scalars import resolve

_PLAIN: Final = (True, True)
"""Flags of a scalar for which no tag is written, unquoted or quoted."""
_base60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?", re.ASCII).fullmatch
_date = re.compile(
    r"[0-9]{4}-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[Tt ]([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?(?:(?<=[0-9])(?:Z|[-+][0-9]{2}:[0-9]{2}))?)?",
    re.ASCII,
).fullmatch


def _quoted(text: str) -> bool:
    """Return whether a string must be quoted, because YAML parsers would otherwise read it as another type.

    `<<` is quoted too. go-yaml does not quote it, and then cannot read the key that it wrote.
    """
    return (
        text == "<<"
        or not isinstance(resolve(text), str)
        or (text[:1] in "+-0123456789" and (_base60(text) is not None or _timestamp(text)))
    )


def _timestamp(text: str) -> bool:
    """Return whether go-yaml would read a text as a timestamp (resolve.go).

    A timestamp is a date, alone, with a time and a zone after `T`, or with a time without zone after a space.
    """
    match = _date(text)
    if match is None:
        return False
    month, day, *clock = (int(part or 0) for part in match.groups())
    if not (
        1 <= month <= 12
        and 1 <= day <= _days(int(text[:4]), month)
        and clock[0] < 24
        and clock[1] < 60
        and clock[2] < 60
    ):
        return False
    zoned = text[-1] == "Z" or (text[-6:-5] in ("+", "-") and ":" in text[-5:])
    return match[3] is None or (" " in text) is not zoned


def _days(year: int, month: int) -> int:
    import calendar

    return calendar.monthrange(year, month)[1] if year else 31


def encode(obj: Object) -> bytes:
    """Encode an object as block-style YAML, with its keys in go-yaml's order."""
    stream = io.StringIO()
    dumper = yaml.CSafeDumper(stream, width=80, allow_unicode=True)
    try:
        emit = dumper.emit
        emit(events.StreamStartEvent())
        emit(events.DocumentStartEvent(explicit=False))
        _emit_value(emit, obj)
        emit(events.DocumentEndEvent(explicit=False))
        emit(events.StreamEndEvent())
    finally:
        dumper.dispose()
    return stream.getvalue().encode("utf-8", "replace")


def _emit_value(emit: Callable[[Any], None], value: Any) -> None:
    """Emit the events of a value: a scalar, a mapping with its members, or a sequence with its elements.

    Args:
        emit: passes an event to libyaml, which writes it.
        value: a JSON value, at most as deep as an object may be.
    """
    if isinstance(value, str):
        _emit_string(emit, value)
    elif isinstance(value, dict):
        emit(events.MappingStartEvent(None, None, True, flow_style=False))
        for key in sorted_keys(value):
            _emit_string(emit, key)
            _emit_value(emit, value[key])
        emit(events.MappingEndEvent())
    elif isinstance(value, list):
        emit(events.SequenceStartEvent(None, None, True, flow_style=False))
        for element in value:
            _emit_value(emit, element)
        emit(events.SequenceEndEvent())
    else:
        emit(events.ScalarEvent(None, None, _PLAIN, _scalar(value)))


def _emit_string(emit: Callable[[Any], None], text: str) -> None:
    style = "|" if "\n" in text else '"' if _quoted(text) else None
    emit(events.ScalarEvent(None, None, _PLAIN, text, style=style))


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return go_float(value) if isinstance(value, float) else str(value)
