"""The functions matches, find and findAll. Patterns are those of RE2, as in Go's regexp.

Upstream: apiserver/pkg/cel/library/regex.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tetrapod.machinery.cel.errors import CostLimitExceeded, EvaluationError
from tetrapod.machinery.cel.library.signatures import Functions
from tetrapod.machinery.golang.regular_expressions import BadPattern, compile_pattern, search_seconds

_MAX_MATCHES: Final = 100_000
"""The most matches of findAll, which take a third of a second. Upstream has no such limit."""
_MATCH_SECONDS: Final = 2.5e-6
_CONTINUATION: Final = frozenset(bytes((byte,)) for byte in range(0x80, 0xC0))
"""The bytes that continue a character in UTF-8."""


def _compiled(pattern: str, prefix: str) -> Any:
    try:
        return compile_pattern(pattern)
    except BadPattern as error:
        raise EvaluationError(f"{prefix}{error}") from None


def _matches(text: str, pattern: str) -> bool:
    return _compiled(pattern, "").search(text) is not None


def _find(text: str, pattern: str) -> str:
    match = _compiled(pattern, "Illegal regex: ").search(text)
    return "" if match is None else match.group(0)


def _find_all(text: str, pattern: str, count: int = -1) -> list[str]:
    compiled = _compiled(pattern, "Illegal regex: ")
    data = text.encode()
    matches: list[str] = []
    previous = -1
    # A match of bytes takes a third of the time of one of text, and `search` would encode the text for each match.
    for match in compiled.finditer(data):
        if len(matches) == count:
            break
        start, end = match.span()
        # As in Go, an empty match directly after another match does not count. Bytes within a character have none.
        if end > start or (start != previous and data[start : start + 1] not in _CONTINUATION):
            if len(matches) == _MAX_MATCHES:
                raise CostLimitExceeded
            matches.append(data[start:end].decode())
        previous = end
    return matches


def _seconds(values: Sequence[Any]) -> float:
    """Estimate the time of a search, whose cost does not depend on repetitions in the pattern: `a[ab]{999}c`.

    Args:
        values: the text and the pattern.
    """
    text, pattern = values[:2]
    if not isinstance(text, str) or not isinstance(pattern, str):
        return 0.0
    try:
        return search_seconds(compile_pattern(pattern), text)
    except BadPattern:
        return 0.0


def _seconds_of_all(values: Sequence[Any]) -> float:
    matches = len(values[0]) if isinstance(values[0], str) else 0
    return _seconds(values) + matches * _MATCH_SECONDS


SECONDS: Final[Mapping[str, Callable[[Sequence[Any]], float]]] = {
    **dict.fromkeys(("matches", "find"), _seconds),
    "findAll": _seconds_of_all,
}
"""The functions that may take longer than their cost says, each with the estimate of its time in seconds."""

FUNCTIONS: Final[Functions] = {
    "matches": [((str, str), _matches)],
    "find": [((str, str), _find)],
    "findAll": [((str, str), _find_all), ((str, str, int), _find_all)],
}
