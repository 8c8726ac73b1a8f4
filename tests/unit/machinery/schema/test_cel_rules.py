"""Tests of CEL rules in a schema: which values each rule is evaluated for, with which variables, and within which
cost.
"""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.machinery.long_work import TakesTooLong, on_event_loop
from tetrapod.machinery.schema.cel_run import Run
from tetrapod.machinery.schema.cel_validation import RuleValidator
from tetrapod.machinery.schema.correlation import Correlation, Ratchet
from tetrapod.machinery.schema.structural import build


def validator(spec: dict[str, Any]) -> RuleValidator:
    return RuleValidator(build({"type": "object", "properties": {"spec": spec}}), root=True)


def errors(rules: RuleValidator, new: Any, old: Any = None) -> list[str]:
    run = Run()
    rules.validate("", {"spec": new}, None if old is None else {"spec": old}, run)
    return [str(error) for error in run.errors]


def test_a_schema_without_rules_costs_nothing() -> None:
    assert validator({"type": "object", "properties": {"a": {"type": "string"}}}).empty


def test_elements_of_list_maps_are_known_again_by_their_keys() -> None:
    item = {
        "type": "object",
        "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v", "message": "shrinks"}],
    }
    rules = validator(
        {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item}
    )
    old = [{"k": "a", "v": 1}, {"k": "b", "v": 5}]
    assert errors(rules, [{"k": "b", "v": 5}, {"k": "a", "v": 2}, {"k": "c", "v": 0}], old) == []
    assert errors(rules, [{"k": "b", "v": 4}, {"k": "a", "v": 1}], old) == ["spec[0]: Invalid value: shrinks"]


def test_failures_of_what_stayed_are_warnings() -> None:
    rules = validator(
        {"type": "object", "properties": {"a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 5"}]}}}
    )
    new, old = {"spec": {"a": 1, "b": 2}}, {"spec": {"a": 1, "b": 1}}
    run = Run()
    rules.validate("", new, old, run, Ratchet(Correlation(rules._node, new, old)))
    assert (run.errors, run.warnings) == ([], ["spec.a: Invalid value: 1: failed rule: self > 5"])


def test_a_budget_is_shared_by_all_rules() -> None:
    rules = validator(
        {"type": "array", "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= 0"}]}}
    )
    run = Run(budget=10)
    rules.validate("", {"spec": list(range(20))}, None, run)
    assert "running out of cost budget" in run.errors[-1].detail
    assert len(run.errors) == 1 and run.budget < 0


def test_expensive_validation_runs_off_the_event_loop() -> None:
    rules = validator(
        {
            "type": "array",
            "items": {"type": "integer"},
            "x-kubernetes-validations": [{"rule": "self.all(x, self.all(y, x + y >= 0))"}],
        }
    )
    assert errors(rules, [1]) == []  # compiled now
    with on_event_loop(10.0):
        rules.validate("", {"spec": [1, 2]}, None, Run())
        with pytest.raises(TakesTooLong):
            rules.validate("", {"spec": list(range(300))}, None, Run())
    assert errors(rules, list(range(300))) == []


POSITIVE = [{"rule": "self > 0"}]
UNTYPED = "rule compiler initialization error: failed to convert to declType for CEL validation rules"


@pytest.mark.parametrize(
    ("schema", "value", "path"),
    [
        ({"type": "object", "items": {"type": "integer", "x-kubernetes-validations": POSITIVE}}, [1], "spec[0]"),
        (
            {"type": "array", "additionalProperties": {"type": "integer", "x-kubernetes-validations": POSITIVE}},
            {"a": 1},
            "spec[a]",
        ),
    ],
)
def test_rules_of_elements_that_the_type_does_not_have_are_errors(
    schema: dict[str, Any], value: Any, path: str
) -> None:
    assert errors(validator(schema), value) == [f'{path}: Invalid value: "integer": {UNTYPED}']


def test_rules_of_properties_that_the_type_does_not_have_are_ignored() -> None:
    schema = {"type": "array", "properties": {"a": {"type": "integer", "x-kubernetes-validations": POSITIVE}}}
    assert errors(validator(schema), {"a": -1}) == []
