"""Tests of the order and the texts of errors in upstream's hand-written form."""

from __future__ import annotations

from typing import Final

from tetrapod.generic.registry.hand_written import HandWritten, Text, new_value
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.metadata import FIELD_IMMUTABLE

EMPTY: Final = HandWritten()


def fields(form: HandWritten, *errors: FieldError) -> list[str]:
    return [error.field for error in form.restore(errors, {})]


def test_errors_of_metadata_come_first_and_others_keep_their_order() -> None:
    found = fields(EMPTY, *map(field.required, ("spec.b", "spec.a", "metadata.labels", "metadata.name")))
    assert found == ["metadata.name", "metadata.labels", "spec.b", "spec.a"]


def test_fields_are_in_the_given_order_and_before_those_that_are_not_named() -> None:
    form = HandWritten("spec.b", "spec.list[].y", "spec.list[].x", "spec.a")
    paths = ("spec.z.a", "spec.c", "spec.a.q", "spec.list[1].x", "spec.list[1].y", "spec.list[0].x", "spec.b")
    found = fields(form, *map(field.required, paths))
    assert found == ["spec.b", "spec.list[0].x", "spec.list[1].y", "spec.list[1].x", "spec.a.q", "spec.z.a", "spec.c"]


def test_elements_may_come_after_their_fields() -> None:
    paths = ("list[0]", "list[1].x", "list[0].x")
    assert fields(HandWritten("list[].x"), *map(field.required, paths)) == ["list[0]", "list[0].x", "list[1].x"]
    later = HandWritten("list[].x", "list[]!")
    assert fields(later, *map(field.required, paths)) == ["list[0].x", "list[0]", "list[1].x"]
    before = HandWritten("source^", "node", "source")
    found = fields(before, *map(field.required, ("source.name", "node", "source")))
    assert found == ["source", "node", "source.name"]


def test_late_errors_duplicates_and_lengths_have_their_places() -> None:
    late = field.invalid("a", 1, FIELD_IMMUTABLE)
    assert fields(HandWritten("a", "b", "a#"), late, field.required("b"), field.required("a")) == ["a", "b", "a"]
    errors = [field.duplicate("list[0]", "x"), field.required("list[1].x")]
    assert fields(HandWritten("list[].x"), *errors) == ["list[1].x", "list[0]"]
    errors = [field.invalid("a", "x", "q"), field.too_long("a", 1)]
    assert [error.type for error in HandWritten("a").restore(errors, {})] == ["FieldValueTooLong", "FieldValueInvalid"]


def test_texts_and_values_are_replaced() -> None:
    form = HandWritten(
        texts={
            "FieldValueRequired rules[].verbs": Text("at least one", former=""),
            "FieldValueInvalid a": Text(lambda error: f"{error.value}?", value=new_value),
        }
    )
    errors = [field.required("rules[1].verbs"), field.required("rules[2].verbs", "kept"), field.invalid("a", 1, "no")]
    found = form.restore(errors, {"a": 2})
    assert [(error.detail, error.value) for error in found if error.field == "a"] == [("1?", 2)]
    assert [error.detail for error in found if error.field != "a"] == ["at least one", "kept"]


def test_fields_of_invalid_elements_are_not_validated() -> None:
    form = HandWritten("list[].x", ends={"list[]": ("x",)})
    errors = [field.required("list[0].x"), field.invalid("list[0]", None, "no"), field.required("list[1].x")]
    assert fields(form, *errors) == ["list[0]", "list[1].x"]
