"""Functions of strings. `format` is in `formatting`.

Upstream: cel-go common/types/string.go and ext/strings.go (version 2).
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.machinery.cel.errors import CostLimitExceeded, EvaluationError
from tetrapod.machinery.cel.library.formatting import format_string
from tetrapod.machinery.cel.library.signatures import Functions, list_of
from tetrapod.machinery.cel.values import shown

_MAX_SIZE: Final = 50_000_000
"""The longest string that a replacement or join may make. Upstream has no such limit, and allocates the memory."""
_QUOTED: Final = str.maketrans(
    {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", "\\": r"\\", '"': r"\""}
)
_LOWER: Final = {code: code + 32 for code in range(65, 91)}
_UPPER: Final = {code: code - 32 for code in range(97, 123)}
_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0"
    "\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if offset < 0:
        raise _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    return text.find(part, offset) if offset < len(text) else -1


def _last_index_of(text: str, part: str, offset: int | None = None) -> int:
    if offset is None:
        if not part:
            return len(text)
        if len(text.encode()) < len(part.encode()):
            return -1
        offset = len(text) - 1
    if offset < 0:
        raise _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    return text.rfind(part, 0, offset + len(part)) if offset < len(text) else -1


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, len(text) if end is None else end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    replacements = text.count(old) if old else len(text) + 1
    if count >= 0:
        replacements = min(replacements, count)
    if len(text) + replacements * len(new) > _MAX_SIZE:
        raise CostLimitExceeded
    return text.replace(old, new, count if count >= 0 else -1)


def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    if count < 0 or count >= len(text):
        return list(text)
    return [*text[: count - 1], text[count - 1 :]]


def _join(values: list[Any], separator: str = "") -> str:
    for value in values:
        if not isinstance(value, str):
            raise EvaluationError(f"join: invalid input: {shown(value)}")
    if len(separator) * len(values) > _MAX_SIZE:
        raise CostLimitExceeded
    return separator.join(values)


def _quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


FUNCTIONS: Final[Functions] = {
    "contains": [((str, str), lambda text, part: part in text)],
    "startsWith": [((str, str), str.startswith)],
    "endsWith": [((str, str), str.endswith)],
    "charAt": [((str, int), _char_at)],
    "indexOf": [((str, str), _index_of), ((str, str, int), _index_of)],
    "lastIndexOf": [((str, str), _last_index_of), ((str, str, int), _last_index_of)],
    "lowerAscii": [((str,), lambda text: text.translate(_LOWER))],
    "upperAscii": [((str,), lambda text: text.translate(_UPPER))],
    "replace": [((str, str, str), _replace), ((str, str, str, int), _replace)],
    "split": [((str, str), _split), ((str, str, int), _split)],
    "substring": [((str, int), _substring), ((str, int, int), _substring)],
    "trim": [((str,), lambda text: text.strip(_SPACE))],
    "join": [((list_of(str),), _join), ((list_of(str), str), _join)],
    "strings.quote": [((str,), _quote)],
    "format": [((str, list), format_string)],
    "jsonpatch.escapeKey": [((str,), lambda key: key.replace("~", "~0").replace("/", "~1"))],
}
