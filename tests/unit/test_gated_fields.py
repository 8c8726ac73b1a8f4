"""Paths of fields that belong to feature gates."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.generic.registry.gated_fields import FieldGates, GatedFields


@pytest.mark.parametrize(
    ("path", "new", "old", "expected"),
    [
        ("a.b", {"a": {"b": 1, "c": 2}}, {}, {"a": {"c": 2}}),
        ("a.b", {"a": {"b": 1}}, {"a": {"b": 5}}, {"a": {"b": 1}}),
        ("a.b", {"a": {"b": 1}}, {"a": {"b": []}}, {"a": {}}),
        ("a.b", {"a": {"b": {}}}, {"a": {"b": {}}}, {"a": {"b": {}}}),
        ("a?.b", {"a": {"b": 1}, "c": 1}, {}, {"c": 1}),
        ("a?.b", {"a": {}, "c": 1}, {}, {"a": {}, "c": 1}),
        ("a?.b", {"a": {"b": 1, "d": 1}}, {}, {"a": {"d": 1}}),
        ("x|y[].b", {"x": [{"b": 1}, {"c": 1}], "y": [{"b": 2}]}, {}, {"x": [{}, {"c": 1}], "y": [{}]}),
        ("x|y[].b", {"x": [{"b": 1}]}, {"y": [{}, {"b": 2}]}, {"x": [{"b": 1}]}),
        ("x[].y[].b", {"x": [{"y": [{"b": 1}]}, {"y": None}, None]}, {}, {"x": [{"y": [{}]}, {"y": None}, None]}),
        ("a.b", {"a": None}, {}, {"a": None}),
        ("a.b", {"a": [{"b": 1}]}, {}, {"a": [{"b": 1}]}),
        ("m{}.b", {"m": {"x": {"b": 1, "c": 1}, "y": {}}}, {}, {"m": {"x": {"c": 1}, "y": {}}}),
        ("m{}.b", {"m": {"x": {"b": 1}}}, {"m": {"y": {"b": 2}}}, {"m": {"x": {"b": 1}}}),
        ("m{}.b", {"m": [{"b": 1}]}, {}, {"m": [{"b": 1}]}),
        ("m[].b", {"m": {"x": {"b": 1}}}, {}, {"m": {"x": {"b": 1}}}),
        ("a|b", {"a": 1, "b": 2, "c": 3}, {}, {"c": 3}),
    ],
)
def test_fields_are_dropped_unless_the_stored_object_has_them(path: str, new: Any, old: Any, expected: Any) -> None:
    FieldGates(GatedFields("", (path,))).drop(new, old)
    assert new == expected


def test_an_exempt_value_does_not_belong_to_the_gate() -> None:
    fields = FieldGates(GatedFields("", ("x[].policy", "x[].rules"), exempt="Always"))
    new = {"x": [{"policy": "Always", "rules": [1]}, {"policy": "Never"}]}
    fields.drop(new, {"x": [{"policy": "Always"}]})
    assert new == {"x": [{"policy": "Always"}, {}]}
    kept = {"x": [{"policy": "Never"}]}
    fields.drop(kept, {"x": [{"policy": "OnFailure"}]})
    assert kept == {"x": [{"policy": "Never"}]}


def test_one_used_path_keeps_all_fields_of_the_gate() -> None:
    new = {"a": 1, "b": 2}
    FieldGates(GatedFields("", ("a", "b"))).drop(new, {"b": 1})
    assert new == {"a": 1, "b": 2}


@pytest.mark.parametrize(("gate", "expected"), [("EnvFiles", {"a": 1}), ("KMSv1", {})])
def test_an_enabled_gate_keeps_its_fields(gate: str, expected: Any) -> None:
    new = {"a": 1}
    FieldGates(GatedFields(gate, ("a",))).drop(new, {})
    assert new == expected


@pytest.mark.parametrize(("also", "expected"), [("WatchList", {"a": 1}), ("KMSv1", {})])
def test_a_second_gate_must_be_enabled_too(also: str, expected: Any) -> None:
    new = {"a": 1}
    FieldGates(GatedFields("EnvFiles", ("a",), also=also)).drop(new, {})
    assert new == expected


@pytest.mark.parametrize(("old", "expected"), [({"spec": {"a": True}}, {"a": 1}), ({"spec": {}}, {})])
def test_a_sign_in_the_stored_object_keeps_the_fields(old: Any, expected: Any) -> None:
    new = {"a": 1, "spec": {"a": True}}
    FieldGates(GatedFields("", ("a",), signs=("spec.a",))).drop(new, old)
    assert new == {**expected, "spec": {"a": True}}
