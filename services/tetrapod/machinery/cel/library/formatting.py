"""The function `format` of strings.

Upstream: cel-go ext/formatting.go, with the locale en_US.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from math import isnan
from typing import Any, Final, NamedTuple

from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.time import text_of
from tetrapod.machinery.cel.types import CelType
from tetrapod.machinery.cel.values import Duration, Fields, ObjectLike, Special, Timestamp, Uint, find, type_of_value
from tetrapod.machinery.golang.floats import go_float
from tetrapod.machinery.golang.quoting import go_quote

MAX_PRECISION: Final = 100_000
"""Upstream has no such bound in this version of the library. It prevents a format from filling the memory with
zeros.
"""
_SCIENTIFIC: Final = 6
_CLAUSE: Final = re.compile(r"%(?:\.([0-9]*))?([\s\S]?)")
_SPECIAL: Final = {"NaN": "NaN", "Infinity": "∞", "-Infinity": "-∞"}


class ClauseError(ValueError):
    """The error for an argument that its clause does not accept: of another type, or bytes that are not UTF-8."""


class BadFormat(ValueError):
    """The error for a format with an invalid clause, or with more clauses than arguments."""


class Clause(NamedTuple):
    """A clause such as `%.2f`: its letter (`f`), and the number of digits after the point (6 by default)."""

    letter: str
    digits: int


def clauses(text: str, count: int) -> Iterator[str | Clause]:
    """Yield the literal pieces and the clauses of a format in order.

    Args:
        text: the format.
        count: the number of arguments.

    Raises:
        BadFormat: a clause is invalid, or there are more than `count`.
    """
    at, index = 0, 0
    while (start := text.find("%", at)) >= 0:
        yield text[at:start]
        if text[start + 1 : start + 2] == "%":
            yield "%"
            at = start + 2
            continue
        if index >= count:
            raise BadFormat(f"index {index} out of range")
        clause, at = _clause(text, start)
        yield clause
        index += 1
    yield text[at:]


def format_string(text: str, args: list[Any]) -> str:
    """Return the text of a format with its clauses replaced by the formatted arguments.

    Raises:
        EvaluationError: the format is invalid, has too few arguments, or one of a wrong type.
    """
    rest = iter(args)
    try:
        return "".join(
            piece if isinstance(piece, str) else _formatted(piece, next(rest)) for piece in clauses(text, len(args))
        )
    except BadFormat as error:
        raise EvaluationError(str(error)) from None
    except ClauseError as error:
        raise EvaluationError(f"error during formatting: {error}") from None


def _formatted(clause: Clause, value: Any) -> str:
    simple = _CLAUSES.get(clause.letter)
    return _real(value, clause.digits, clause.letter) if simple is None else simple(value)


def _clause(text: str, start: int) -> tuple[Clause, int]:
    """Parse the clause that begins at an offset, and return it with the offset after it.

    Args:
        text: the format.
        start: the offset of a `%`.

    Raises:
        BadFormat: the clause is invalid.
    """
    match = _CLAUSE.match(text, start)
    assert match is not None  # it begins with %
    precision, letter = match[1], match[2]
    failed = "could not parse formatting clause: "
    if precision is None and not letter:
        raise BadFormat("unexpected end of string")
    digits = 6
    if precision is not None:
        failed_precision = f"{failed}error while parsing precision: "
        if not letter:
            raise BadFormat(f"{failed_precision}could not find end of precision specifier")
        if not precision:
            text = 'error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
            raise BadFormat(f"{failed_precision}{text}")
        digits = int(precision[:9])
        if digits > MAX_PRECISION:
            raise BadFormat(
                f"{failed_precision}precision value of {precision} exceeds maximum allowed precision of {MAX_PRECISION}"
            )
    if letter not in "sdbxXofe":
        raise BadFormat(f'{failed}unrecognized formatting clause "{letter}"')
    return Clause(letter, digits), match.end()


def _name(value: Any) -> str:
    return type_of_value(value).name


def as_string(value: Any) -> str:
    """Return a value as `%s` formats it.

    Raises:
        ClauseError: `%s` does not accept values of this type, or bytes that are not UTF-8.
    """
    if value is None:
        return "null"
    if value.__class__ is bool:
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return _text(value)
    if isinstance(value, float):
        return go_float(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, (Timestamp, Duration)):
        return text_of(value)
    if isinstance(value, list):
        return f"[{', '.join(_quoted(v) for v in value)}]"
    if isinstance(value, (dict, ObjectLike)) and not isinstance(value, Fields):
        pairs = sorted((_quoted_key(key), _quoted(find(value, key))) for key in value)
        return f"{{{', '.join(f'{key}:{item}' for key, item in pairs)}}}"
    if isinstance(value, CelType):
        return value.name
    text = (
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
        "timestamps"
    )
    raise ClauseError(f"{text}, was given {_name(value)}")


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ClauseError(
            'could not convert argument "invalid UTF-8 in bytes, cannot convert to string" to string'
        ) from None


def _quoted_key(key: Any) -> str:
    if key.__class__ is float:
        raise ClauseError("no formatting function for map key of type double")
    return _quoted(key)


def _quoted(value: Any) -> str:
    """Return a value as `%s` formats it within a list or map: strings, bytes and times as literals.

    Raises:
        ClauseError: `%s` does not accept values of this type, or bytes that are not UTF-8.
    """
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, bytes):
        return f"b{go_quote(_text(value))}"
    if isinstance(value, float):
        return f"{value:.6f}" if value - value == 0 else f'"{go_float(value)}"'
    if isinstance(value, Timestamp):
        return f'timestamp("{text_of(value)}")'
    if isinstance(value, Duration):
        return f'duration("{text_of(value)}")'
    if isinstance(value, Special):
        raise ClauseError(f"no formatting function for {_name(value)}")
    return as_string(value)


def _decimal(value: Any) -> str:
    if value.__class__ in (int, Uint):
        return str(int(value))
    raise ClauseError(f"decimal clause can only be used on integers, was given {_name(value)}")


def _binary(value: Any) -> str:
    if value.__class__ is bool:
        return "1" if value else "0"
    if value.__class__ in (int, Uint):
        return format(value, "b")
    raise ClauseError(f"only integers and bools can be formatted as binary, was given {_name(value)}")


def _octal(value: Any) -> str:
    if value.__class__ in (int, Uint):
        return format(value, "o")
    raise ClauseError(f"octal clause can only be used on integers, was given {_name(value)}")


def _hex(value: Any) -> str:
    if isinstance(value, str):
        return value.encode().hex()
    if isinstance(value, bytes):
        return value.hex()
    if value.__class__ in (int, Uint):
        return format(value, "x")
    raise ClauseError(f"only integers, byte buffers, and strings can be formatted as hex, was given {_name(value)}")


def _real(value: Any, digits: int, letter: str) -> str:
    """Format a double for `%f` or `%e`.

    Args:
        value: the double, or the text "NaN", "Infinity" or "-Infinity".
        digits: the digits after the point, which `%e` ignores.
        letter: "f" or "e".

    Raises:
        ClauseError: the value is neither a double nor one of these texts.
    """
    if isinstance(value, str) and value in _SPECIAL:
        return _SPECIAL[value]
    if value.__class__ is not float:
        kind = "fixed-point" if letter == "f" else "scientific"
        raise ClauseError(f"{kind} clause can only be used on doubles, was given {_name(value)}")
    if value - value != 0:
        return "NaN" if isnan(value) else "∞" if value > 0 else "-∞"
    if letter == "f":
        return f"{value:,.{digits}f}"
    # Upstream mistakes the precision for a width, which has no effect.
    mantissa, _, exponent = f"{value:.{_SCIENTIFIC}e}".partition("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    if len(raised.lstrip("⁻")) < 2:
        raised = f"⁻⁰{raised[1:]}" if raised.startswith("⁻") else f"⁰{raised}"
    return f"{mantissa}×10{raised}"


_CLAUSES: Final[dict[str, Callable[[Any], str]]] = {
    "s": as_string,
    "d": _decimal,
    "b": _binary,
    "o": _octal,
    "x": _hex,
    "X": lambda value: _hex(value).upper(),
}
