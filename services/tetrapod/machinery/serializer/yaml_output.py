"""Encoding of objects as YAML, as sigs.k8s.io/yaml does it. As with libyaml, lines are folded after 80 columns.

Upstream: go.yaml.in/yaml/v2, encode.go (quoting) and sorter.go (the order of keys).
"""

from __future__ import annotations

import functools
import re
from typing import Any, Final

import yaml

from tetrapod.machinery.golang.floats import go_float
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.serializer.yaml_scalars import resolve
from tetrapod.machinery.sorting import sort_large

_STR: Final = "tag:yaml.org,2002:str"
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


def _compare(one: str, other: str) -> int:
    """Return a negative number, zero or a positive number if one key comes before, equals or comes after the other.

    Letters come after other characters, and runs of digits are compared by value (`a9` before `a10`).
    """
    for at, (a, b) in enumerate(zip(one, other, strict=False)):
        if a == b:
            continue
        if a.isalpha() or b.isalpha():
            return (-1 if a < b else 1) if a.isalpha() and b.isalpha() else -1 if b.isalpha() else 1
        return _compare_digits(one, other, at)
    return len(one) - len(other)


def _compare_digits(one: str, other: str, at: int) -> int:
    start = 0
    if "0" in (one[at], other[at]):  # zeros within a number are significant
        previous = at - 1
        while previous >= 0 and one[previous].isdecimal():
            if one[previous] != "0":
                start = 1
                break
            previous -= 1
    a, b = _run(one, at), _run(other, at)
    for left, right in ((_number(start, a), _number(start, b)), (len(a), len(b)), (ord(one[at]), ord(other[at]))):
        if left != right:
            return -1 if left < right else 1
    return 0


def _number(start: int, digits: str) -> int:
    """Return the number with the decimal digits `start` and `digits` as Go's int64, which wraps around on overflow."""
    number = start
    for digit in digits:
        number = number * 10 + int(digit) & 0xFFFF_FFFF_FFFF_FFFF
    return number - (1 << 64) if number >> 63 else number


def _run(text: str, at: int) -> str:
    end = at
    while end < len(text) and text[end].isdecimal():
        end += 1
    return text[at:end]


_LISTS: Final = ("items", "rows")
"""The fields of lists and Tables that contain the objects."""
_DOCUMENT_END: Final = "\n...\n"
"""Follows a document with certain scalars. Such a list is encoded at once."""

_by_go: Final = functools.cmp_to_key(_compare)


class _Dumper(yaml.CSafeDumper):
    """PyYAML's dumper without aliases, which writes scalars unquoted wherever the grammar of YAML allows it.

    `_string` sets the style of strings that must be quoted.
    """

    yaml_implicit_resolvers: dict[Any, Any] = {}

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _string(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar(_STR, text, style="|" if "\n" in text else '"' if _quoted(text) else None)


def _mapping(dumper: Any, value: Object) -> Any:
    plain = all(map(str.isalpha, value))
    return dumper.represent_mapping(
        "tag:yaml.org,2002:map", [(key, value[key]) for key in sort_large(value, None if plain else _by_go)]
    )


_Dumper.add_representer(str, _string)
_Dumper.add_representer(dict, _mapping)
_Dumper.add_representer(bool, lambda dumper, value: dumper.represent_scalar(_STR, "true" if value else "false"))
_Dumper.add_representer(int, lambda dumper, value: dumper.represent_scalar(_STR, str(value)))
_Dumper.add_representer(float, lambda dumper, value: dumper.represent_scalar(_STR, go_float(value)))
_Dumper.add_representer(type(None), lambda dumper, _: dumper.represent_scalar(_STR, "null"))


def encode(obj: Object) -> bytes:
    """Encode an object as block-style YAML, with its keys in go-yaml's order.

    The items of a list, and the rows of a Table, are encoded one by one. PyYAML makes an object of each scalar before
    it writes the first. Those of a list of 24 MB, deallocated at once, would block other threads for 300 ms.
    """
    for name in _LISTS:
        members = obj.get(name) if isinstance(obj, dict) else None
        if isinstance(members, list) and len(members) > 1:
            parts = [_dump({**obj, name: []}), *(_dump([member]) for member in members)]
            if not any(part.endswith(_DOCUMENT_END) for part in parts):
                head, key, tail = ("\n" + parts[0]).partition(f"\n{name}:")
                parts[0] = f"{head}{key}\n"[1:]
                parts.append(tail.removeprefix(" []\n"))
                return b"".join([part.encode("utf-8", "replace") for part in parts])
    return _dump(obj).encode("utf-8", "replace")


def _dump(value: Any) -> str:
    text: str = yaml.dump(value, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, width=80)
    return text
