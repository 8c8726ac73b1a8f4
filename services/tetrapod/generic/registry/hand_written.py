"""The hand-written form of validation errors, without the feature gate DeclarativeValidationBeta.

Upstream declares some rules beside the fields of its types and keeps a hand-written form of them. With the gate, their
errors come after all others, and have the texts of the declared form. Without it, they are where and what the
hand-written function says. Which objects are valid does not depend on the gate.
Upstream: staging/src/k8s.io/apiserver/pkg/registry/rest/validate.go, ValidateDeclarativelyWithMigrationChecks
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, NamedTuple

from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.metadata import FIELD_IMMUTABLE
from tetrapod.machinery.names import is_long_name

GATE: Final = "DeclarativeValidationBeta"
_STEP: Final = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_KEY: Final = re.compile(r"\[[^\]]*\]")
_LAST: Final = 1 << 30


class Text(NamedTuple):
    """The text or value of an error in its hand-written form, if they differ from those of the declared form.

    Attributes:
        detail: the text after the value, or a function that returns it; None keeps it.
        former: the text that is replaced; None for any.
        value: returns the value that the error shows, from the error and the new object; None keeps it.
    """

    detail: str | Callable[[FieldError], str] | None = None
    former: str | None = None
    value: Callable[[FieldError, Object], Any] | None = None


class HandWritten:
    """The hand-written order and texts of the errors of one kind.

    Args:
        order: the paths of fields in the order in which the hand-written function visits them. `rules[]` means the
            elements of a list or map. A path may have a suffix:

            - `devices[]!`: the errors of the element or field itself, which come after those of its fields.
            - `source^`: the errors of the field itself, which come before those of other fields.
            - `spec#`: the error of the field whose text is `late`.

            Fields that are not named come after the others of their object, and keep their order. Duplicates in a list
            come after all other errors of its elements. Errors of a length come before the others of a field.
        late: the text of errors that come after others of the same field.
        texts: the texts of errors, by type and path, such as `FieldValueRequired rules[].verbs`.
        ends: by the path of an element, its fields that are not validated if the element itself is invalid.
    """

    def __init__(
        self,
        *order: str,
        late: str = FIELD_IMMUTABLE,
        texts: Mapping[str, Text] | None = None,
        ends: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._order = ("metadata.generateName", "metadata.name", *order)
        self._late, self._texts, self._ends = late, texts or {}, ends or {}

    @cached_property
    def _ranks(self) -> dict[str, int]:
        ranks: dict[str, int] = {}
        for rank, path in enumerate(self._order):
            ends = [match.end() for match in _STEP.finditer(path.rstrip("!#^"))]
            for end in ends[:-1]:
                ranks.setdefault(path[:end], rank)
            ranks[path] = rank
        return ranks

    def restore(self, errors: Sequence[FieldError], obj: Object) -> list[FieldError]:
        """Return the errors of a new object in the form that they have without the gate."""
        skipped = tuple(
            f"{error.field}.{name}"
            for error in errors
            if error.type == "FieldValueInvalid"
            for name in self._ends.get(_pattern(error.field), ())
        )
        if skipped:
            errors = [error for error in errors if not error.field.startswith(skipped)]
        return [self._worded(error, obj) for error in sorted(errors, key=self._place)]

    def _worded(self, error: FieldError, obj: Object) -> FieldError:
        text = self._texts.get(f"{error.type} {_pattern(error.field)}")
        if text is None or (text.former is not None and error.detail != text.former):
            return error
        changed = error
        if text.detail is not None:
            changed = replace(error, detail=text.detail if isinstance(text.detail, str) else text.detail(error))
        return changed if text.value is None else replace(changed, value=text.value(error, obj))

    def _place(self, error: FieldError) -> tuple[tuple[int, int], ...]:
        """Return the place of an error among the others. Placeholders, which have no field, come last."""
        if not error.field:
            return ((_LAST + 1, 0),)
        place, path = [], ""
        for match in _STEP.finditer(error.field):
            key, name = match.groups()
            if name is None:
                path += "[]"
                place.append((0, int(key) if key.isdecimal() else 0))
                continue
            path = f"{path}.{name}" if path else name
            place.append((self._ranks.get(path, _LAST), 0))
            if path not in self._ranks:
                return tuple(place)
        if error.detail == self._late and f"{path}#" in self._ranks:
            place[-1] = (self._ranks[f"{path}#"], 0)
        elif error.type == "FieldValueDuplicate" and path.endswith("[]"):
            place[-1] = (1, place[-1][1])
        elif f"{path}^" in self._ranks:
            place[-1] = (self._ranks[f"{path}^"], 0)
        elif error.type == "FieldValueTooLong":
            place[-1] = (place[-1][0], -1)
        elif f"{path}!" in self._ranks:
            place.append((self._ranks[f"{path}!"], 0))
        return tuple(place)


def new_value(error: FieldError, obj: Object) -> Any:
    """Return the value of the field of an error in the new object; None if it is not set. It is a field of its own."""
    return obj.get(error.field)


def lower_case(error: FieldError) -> str:
    """Return the text for an invalid name of a driver, which has to be in lower case."""
    return (is_long_name(str(error.value)) or [error.detail])[-1]


def path_steps(path: str) -> list[str]:
    """Return the names and keys in the path of a field."""
    return [key if name is None else name for key, name in (match.groups() for match in _STEP.finditer(path))]


def _pattern(path: str) -> str:
    return _KEY.sub("[]", path)


NO_HAND_WRITTEN: Final = HandWritten()
"""The form of kinds without rules that are declared beside fields."""


def in_form(form: HandWritten, errors: list[FieldError], obj: Object) -> list[FieldError]:
    """Return the errors of a new object in the form that the gate selects."""
    if not errors or form is NO_HAND_WRITTEN or feature_gates.enabled(GATE):
        return errors
    return form.restore(errors, obj)
