"""Resolution of YAML scalars to values by the rules of go-yaml v2 (resolve.go): those of YAML 1.1 with exceptions."""

from __future__ import annotations

import math
import re
from typing import Any, Final

_PREFIX: Final = "tag:yaml.org,2002:"


def _cases(*words: str) -> list[str]:
    return [form for word in words for form in (word, word.capitalize(), word.upper())]


_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(["y", "Y", *_cases("yes", "true", "on")], True),
    **dict.fromkeys(["n", "N", *_cases("no", "false", "off")], False),
    **dict.fromkeys(["", "~", *_cases("null")], None),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], float("nan")),
    **dict.fromkeys([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"], float("inf")),
    **dict.fromkeys(["-.inf", "-.Inf", "-.INF"], float("-inf")),
}
_integer = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII).fullmatch
_float = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII).fullmatch
_BASES: Final = ((2, 16), (3, 2), (4, 8), (5, 10))


def resolve(text: str) -> Any:
    """Return the value of a plain scalar without a tag: None, a boolean, a number, or the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first in "0123456789+-":
        return _number(text)
    if first == "." and _float(text):
        return _finite(text, text)
    return text


def _number(text: str) -> Any:
    plain = text.replace("_", "")
    if match := _integer(plain):
        for group, base in _BASES:
            if match[group] is not None and len(match[group]) < 70:
                number = int(match[group], base) * (-1 if match[1] == "-" else 1)
                if -(1 << 63) <= number < (1 << 64):
                    return number
    return _finite(plain, text) if _float(plain) else text


def _finite(number: str, text: str) -> float | str:
    """Return the value of a number, or the text of the scalar if a float64 cannot hold it, as go-yaml does."""
    value = float(number)
    return text if math.isinf(value) else value


def resolve_tagged(text: str, tag: str) -> Any:
    """Return the value of a scalar with an explicit tag, or the text itself if the tag is unknown.

    Args:
        text: the text of the scalar.
        tag: the full tag, such as `tag:yaml.org,2002:int`.

    Raises:
        ValueError: the text is not a value of that type; with upstream's text.
    """
    kind = tag.removeprefix(_PREFIX)
    if kind == tag or kind in ("str", "timestamp", "merge"):
        return text
    value = resolve(text)
    if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    matches = {
        "null": value is None,
        "bool": isinstance(value, bool),
        "int": isinstance(value, int) and not isinstance(value, bool),
        "float": isinstance(value, float),
    }
    if not matches.get(kind, True):
        raise ValueError(f"cannot decode !!str `{text}` as a !!{kind}")
    return value
