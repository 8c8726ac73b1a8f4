"""Validation errors of fields, which strategies return and 422 responses list.

A path is a plain string (`spec.containers[0].name`); `child`, `index` and `key` append to it as upstream does. The
number of errors and the lengths of paths and quoted values are limited (error_limits.py).

Upstream: k8s.io/apimachinery/pkg/util/validation/field, errors.go and path.go.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import orjson

from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.error_limits import MAX_ERRORS, MAX_PATH, MAX_TEXT, MAX_VALUE, cut, cut_path, more
from tetrapod.machinery.golang.floats import go_float
from tetrapod.machinery.golang.json_numbers import as_go_writes
from tetrapod.machinery.golang.quoting import go_quote

_OMITTED: Final = object()
"""The value of an error that does not show the invalid value."""


class TypedText(str):
    """A text of a named Go type such as `Protocol`, or behind a pointer, which errors quote as JSON instead of by %q.

    The two differ in `<`, `>`, `&` and control characters.
    """

    __slots__ = ()


def as_typed(value: Any) -> Any:
    """Return a text as `TypedText`, and any other value as it is."""
    return TypedText(value) if isinstance(value, str) else value


def child(path: str, *names: str) -> str:
    """Return the path of a field below `path`: `child("spec", "a", "b")` is `spec.a.b`.

    The path of the object itself is "".
    """
    joined = ".".join((path, *names)) if path else ".".join(names)
    # Validation makes many paths, most of which need no call of `cut_path`.
    return joined if len(joined) <= MAX_PATH else cut_path(joined)


def index(path: str, i: int) -> str:
    """Return the path of the element `i` of the list at `path`: `spec.ports[0]`."""
    joined = f"{path}[{i}]"
    return joined if len(joined) <= MAX_PATH else cut_path(joined)


def key(path: str, name: str) -> str:
    """Return the path of the entry `name` of the map at `path`: `metadata.labels[app]`."""
    joined = f"{path}[{name}]"
    return joined if len(joined) <= MAX_PATH else cut_path(joined)


MAX_COLLECTED: Final = 3 * MAX_ERRORS
"""The most errors that one validation creates. It exceeds the number shown, because some errors are filtered out or
duplicate others.
"""
_CHARACTERS_PER_ERROR: Final = 512
"""Errors with longer texts count as several errors."""


class _Collected(threading.local):
    """The state of `limited`, one for each thread.

    Attributes:
        made: the number of errors that this thread's validation has created; -1 means that they are not limited.
    """

    made = -1


_collected: Final = _Collected()


@contextmanager
def limited() -> Iterator[None]:
    """Limit the number and the length of the errors that the current thread creates within the `with` statement.

    Beyond the limit, `FieldError(...)` returns LEFT_OUT, which counts as an error but needs no memory. So the outcome
    of validation is the same, and the number of errors stays known. Without a limit a request could fill the memory
    with errors: three megabytes can contain a million mistakes.
    """
    outer, _collected.made = _collected.made, 0
    try:
        yield
    finally:
        _collected.made = outer


class _Limited(type):
    """The metaclass of `FieldError`: within `limited` and beyond its limit, `FieldError(...)` returns LEFT_OUT."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = _collected.made
        if made < 0:
            return super().__call__(*args, **kwargs)
        if made >= MAX_COLLECTED:
            return LEFT_OUT
        error = super().__call__(*args, **kwargs)
        _collected.made = made + 1 + (len(error.field) + len(error.detail)) // _CHARACTERS_PER_ERROR
        return error


@dataclass(frozen=True, slots=True)
class FieldError(metaclass=_Limited):
    """An error of one field.

    Attributes:
        type: upstream's ErrorType, which becomes the reason of the cause in a Status.
        field: the path of the field.
        detail: the text after the type and the value, or "".
        value: the invalid value, which the text quotes; not set for errors that do not show it.
    """

    type: str
    field: str
    detail: str
    value: Any = _OMITTED

    def body(self) -> str:
        """Return the message of the cause in a Status: title, invalid value and detail, without the field's path."""
        text = _TITLES[self.type]
        if self.value is not _OMITTED and self.type not in _WITHOUT_VALUE:
            text = f"{text}: {format_value(self.value)}"
        return cut(f"{text}: {self.detail}" if self.detail else text, MAX_VALUE + 1024)

    def __str__(self) -> str:
        return f"{self.field}: {self.body()}"


LEFT_OUT: Final = FieldError("LeftOut", "", "")
"""A placeholder for an error beyond the limit of `limited`."""
UNCOUNTED: Final = FieldError("Uncounted", "", "")
"""A placeholder for any number of errors, from a validator that stopped early."""
_STAND_INS: Final = frozenset({LEFT_OUT.type, UNCOUNTED.type})


def end_early(errors: list[FieldError]) -> bool:
    """Return whether a validator has collected more errors than a response lists, so that it need not find the others.

    UNCOUNTED is then appended to the errors. A list of a million invalid elements would take seconds to validate.

    Args:
        errors: the errors of the elements of one list so far, all of which will be reported.
    """
    if len(errors) <= MAX_COLLECTED:
        return False
    errors.append(UNCOUNTED)
    return True


def distinct(errors: Sequence[FieldError]) -> list[FieldError]:
    """Return the errors without those whose type and text equal an earlier one's.

    Only the first errors are compared, up to MAX_ERRORS distinct ones, MAX_TEXT characters, or a placeholder for an
    error that was left out (`LEFT_OUT`, `UNCOUNTED`). All errors that follow are returned as they are.

    Upstream: ErrorList.ToAggregate.
    """
    seen: dict[tuple[str, str], FieldError] = {}
    size = 0
    for i, error in enumerate(errors):
        if len(seen) >= MAX_ERRORS or size > MAX_TEXT or error.type in _STAND_INS:
            return [*seen.values(), *errors[i:]]
        text = str(error)
        size += len(text)
        seen.setdefault((error.type, text), error)
    return list(seen.values())


def shown(errors: Sequence[FieldError]) -> tuple[list[tuple[FieldError, str]], str]:
    """Return the errors that a response lists, each with its `body()`, and a line with the number of those left out.

    The line is "" if the list is complete.
    """
    listed: list[tuple[FieldError, str]] = []
    size = 0
    for error in errors:
        if error.type in _STAND_INS or len(listed) == MAX_ERRORS:
            break
        body = error.body()
        size += len(body) + len(error.field)
        if listed and size > MAX_TEXT:
            break
        listed.append((error, body))
    if len(listed) == len(errors):
        return listed, ""
    uncounted = any(error.type == UNCOUNTED.type for error in errors[len(listed) :])
    return listed, more(0 if uncounted else len(errors) - len(listed))


def aggregate(errors: Sequence[FieldError]) -> str:
    """Return the distinct errors as one text: in brackets and separated by commas, but a single one as it is."""
    listed, rest = shown(distinct(errors))
    texts = [f"{error.field}: {body}" for error, body in listed] + ([rest] if rest else [])
    return aggregate_errors(texts)


_TITLES: Final = {
    "FieldValueNotFound": "Not found",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "InternalError": "Internal error",
    "FieldValueTypeInvalid": "Invalid value",
    "LeftOut": "Left out",
    "Uncounted": "Left out",
}
_WITHOUT_VALUE: Final = frozenset({"FieldValueRequired", "FieldValueForbidden", "FieldValueTooLong", "InternalError"})


def format_value(value: Any) -> str:
    """Return an invalid value as upstream's messages show it: strings quoted as by %q, objects as JSON, nil as null.

    A `TypedText` counts as an object. Long values are shortened.
    """
    if isinstance(value, str) and not isinstance(value, TypedText):
        return format_text(value)
    if isinstance(value, float):
        return go_float(value)
    return cut(as_go_writes(orjson.dumps(value)).decode().translate(HTML), MAX_VALUE)


def format_text(text: str) -> str:
    """Return a string quoted as by Go's %q; beyond MAX_VALUE characters it is shortened."""
    if len(text) <= MAX_VALUE:
        return go_quote(text)
    return f"{go_quote(text[:MAX_VALUE])}... ({len(text) - MAX_VALUE:,} more characters)"


HTML: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""The characters that Go's JSON encoder escapes for HTML."""


def invalid(path: str, value: Any, detail: str) -> FieldError:
    """Return an error for an invalid value, which the message shows before `detail`.

    Args:
        path: the path of the field.
        value: the invalid value.
        detail: what is wrong with the value.
    """
    return FieldError("FieldValueInvalid", path, detail, value)


def required(path: str, detail: str = "") -> FieldError:
    """Return an error for a missing value.

    Args:
        path: the path of the field.
        detail: the text after `Required value: `; "" for none.
    """
    return FieldError("FieldValueRequired", path, detail)


def forbidden(path: str, detail: str = "") -> FieldError:
    """Return an error for a field that must not be set.

    Args:
        path: the path of the field.
        detail: the text after `Forbidden: `; "" for none.
    """
    return FieldError("FieldValueForbidden", path, detail)


def duplicate(path: str, value: Any) -> FieldError:
    """Return an error for a value that occurs more than once in a list or map.

    Args:
        path: the path of the later occurrence.
        value: the value.
    """
    return FieldError("FieldValueDuplicate", path, "", value)


def omitted(path: str, detail: str) -> FieldError:
    """Return an "Invalid value" error whose message has only `detail`, for values that upstream does not show.

    Args:
        path: the path of the field.
        detail: what is wrong with the value.
    """
    return FieldError("FieldValueInvalid", path, detail)


def not_found(path: str, value: Any) -> FieldError:
    """Return an error for a value that refers to something that does not exist.

    Args:
        path: the path of the field.
        value: the value, which the message shows.
    """
    return FieldError("FieldValueNotFound", path, "", value)


def not_supported(path: str, value: Any, supported: Iterable[str], *, typed: bool = True) -> FieldError:
    """Return an error for a value that is not one of `supported`.

    The supported values are listed in the given order; those of a set are sorted, as upstream does.

    Args:
        path: the path of the field.
        value: the value, which the message shows.
        supported: the supported values.
        typed: whether the value has a named type in Go, as those of most enumerations have (`TypedText`).
    """
    shown = as_typed(value) if typed else value
    ordered = sorted(supported) if isinstance(supported, (set, frozenset)) else supported
    listed = ", ".join(go_quote(v) for v in ordered)
    return FieldError("FieldValueNotSupported", path, f"supported values: {listed}" if listed else "", shown)


def too_long(path: str, limit: int) -> FieldError:
    """Return an error for a string of more than `limit` bytes. As upstream, it does not repeat the long value.

    Args:
        path: the path of the field.
        limit: the most bytes; the message names no limit if it is negative.
    """
    return FieldError(
        "FieldValueTooLong", path, f"may not be more than {limit} bytes" if limit >= 0 else "value is too long"
    )


def too_many_characters(path: str, limit: int) -> FieldError:
    """Return an error for a string of more than `limit` characters, the unit of `maxLength` in schemas.

    Args:
        path: the path of the field.
        limit: the most characters.
    """
    return FieldError(
        "FieldValueTooLong", path, f"may not be more than {limit} {'character' if limit == 1 else 'characters'}"
    )


def too_many(path: str, actual: int, limit: int) -> FieldError:
    """Return an error for a list or map of `actual` entries where at most `limit` are allowed.

    Args:
        path: the path of the list or map.
        actual: its number of entries.
        limit: the most entries.
    """
    return FieldError(
        "FieldValueTooMany", path, f"must have at most {limit} {'item' if limit == 1 else 'items'}", actual
    )


def internal_error(path: str, message: str) -> FieldError:
    """Return an error for a check that could not be made, such as a rule whose evaluation failed.

    Args:
        path: the path of the field.
        message: the text after `Internal error: `.
    """
    return FieldError("InternalError", path, message)
