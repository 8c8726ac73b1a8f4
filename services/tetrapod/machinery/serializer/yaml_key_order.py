"""The order in which go-yaml writes the keys of a mapping. Upstream: go.yaml.in/yaml/v2, sorter.go.

Letters come after other characters, and runs of digits are compared by value (`a9` before `a10`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from typing import Final

from tetrapod.machinery.sorting import sort_large

_FEW: Final = 1000
"""Keys up to which they are compared as by go-yaml. A comparison of two takes a microsecond."""
_digits = re.compile("[0-9]+", re.ASCII)
_ASCII: Final = [chr(code) for code in range(128)]
_OTHERS: Final = [character for character in _ASCII if not character.isalnum()]
_NUMBER: Final = chr(len(_OTHERS))
"""Begins a number in a sort key. It sorts after all other characters and before the letters."""
_RANKS: Final = str.maketrans(
    {character: chr(rank) for rank, character in enumerate(_OTHERS)}
    | {letter: chr(len(_OTHERS) + 1 + rank) for rank, letter in enumerate(filter(str.isalpha, _ASCII))}
)


def sorted_keys(keys: Collection[str]) -> list[str]:
    """Return the keys in go-yaml's order.

    That order depends on the sorting algorithm if letters follow digits: `1b` < `2` < `15` < `1b`. More than a thousand
    such keys are sorted by the values of whole numbers.
    """
    if all(map(str.isalpha, keys)):
        return sort_large(keys)
    return sorted(keys, key=_by_go) if len(keys) <= _FEW else sort_large(keys, _natural)


def _natural(key: str) -> str:
    """Return a text by which keys sort as by go-yaml.

    It differs for letters after digits, zeros before other digits, numbers that overflow, and symbols that are not
    ASCII.
    """
    return _digits.sub(_number_key, key.translate(_RANKS))


def _number_key(match: re.Match[str]) -> str:
    digits = match[0]
    significant = digits.lstrip("0") or "0"
    return f"{_NUMBER}{chr(256 + len(significant))}{significant}{chr(256 + len(digits))}"


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


_by_go: Final = functools.cmp_to_key(_compare)
