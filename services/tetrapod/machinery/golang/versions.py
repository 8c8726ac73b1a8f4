"""Parsing of version strings, with upstream's errors.

Upstream: staging/src/k8s.io/apimachinery/pkg/util/version/version.go
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from tetrapod.machinery.golang.quoting import go_quote

_NUMBERS: Final = re.compile(r"\s*v?([0-9]+(?:\.[0-9]+)*)(.*)", re.ASCII).fullmatch
_IDENTIFIERS: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_SUFFIX: Final = re.compile(rf"(?:-({_IDENTIFIERS}))?(?:\+{_IDENTIFIERS})?\s*", re.ASCII).fullmatch


def parse_generic(text: str) -> list[str]:
    """Return the numbers of a version such as "v1.37", of which it has at least two. Ignore the text behind them.

    Raises:
        ValueError: the text does not begin with such numbers. The text of the error is upstream's.

    Upstream: ParseGeneric
    """
    numbers, _ = _divided(text)
    if len(numbers) < 2:
        raise _illegal(text)
    _check_zeros(numbers, text)
    return numbers


def parse_semantic(text: str) -> list[str]:
    """Return the three numbers of a semantic version such as "v1.37.1-rc.0+build".

    Raises:
        ValueError: the text is not a semantic version. The text of the error is upstream's.

    Upstream: ParseSemantic
    """
    numbers, suffix = _divided(text)
    if len(numbers) != 3:
        raise _illegal(text)
    _check_zeros(numbers, text)
    if (match := _SUFFIX(suffix)) is None:
        raise ValueError(f"could not parse pre-release/metadata ({suffix}) in version {go_quote(text)}")
    _check_zeros([part for part in (match[1] or "").split(".") if part.isdecimal()], text)
    return numbers


def _divided(text: str) -> tuple[list[str], str]:
    """Return the numbers at the beginning of a version, and the text behind them."""
    if (match := _NUMBERS(text)) is None:
        raise ValueError(f"could not parse {go_quote(text)} as version")
    return match[1].split("."), match[2]


def _illegal(text: str) -> ValueError:
    return ValueError(f"illegal version string {go_quote(text)}")


def _check_zeros(numbers: Iterable[str], text: str) -> None:
    """Check that no number of the version `text` begins with a zero."""
    for number in numbers:
        if number.startswith("0") and number != "0":
            raise ValueError(f"illegal zero-prefixed version component {go_quote(number)} in {go_quote(text)}")
