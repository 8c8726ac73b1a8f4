"""The functions matches, find and findAll. Patterns are those of RE2, as in Go's regexp.

Upstream: apiserver/pkg/cel/library/regex.go.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.library.signatures import Functions
from tetrapod.machinery.golang.regular_expressions import BadPattern, compile_pattern


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
    matches: list[str] = []
    at, previous = 0, -1
    while at <= len(text) and len(matches) != count:
        match = compiled.search(text, at)
        if match is None:
            break
        start, end = match.span()
        # As in Go, an empty match directly after another match does not count.
        if end > start or start != previous:
            matches.append(match.group(0))
        previous = end
        at = end if end > start else end + 1
    return matches


FUNCTIONS: Final[Functions] = {
    "matches": [((str, str), _matches)],
    "find": [((str, str), _find)],
    "findAll": [((str, str), _find_all), ((str, str, int), _find_all)],
}
