"""Tests that the CEL expressions of one object are compiled no more often than its response needs."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.core.resource.resource_claims import validation as resource_claims
from tetrapod.machinery.cel.environment import Environment
from tetrapod.machinery.error_limits import MAX_TEXT
from tetrapod.machinery.field import UNCOUNTED, FieldError, limited
from tetrapod.machinery.gvk import Object


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of all expressions that are compiled during the test."""
    expressions: list[str] = []
    compile_ = Environment.compile

    def counted(self: Environment, expression: str) -> Any:
        expressions.append(expression)
        return compile_(self, expression)

    monkeypatch.setattr(Environment, "compile", counted)
    return expressions


def _claim(requests: list[Object]) -> Object:
    return {"metadata": {}, "spec": {"devices": {"requests": requests}}}


def _request(number: int, expressions: list[str]) -> Object:
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    exactly = {"deviceClassName": "c", "selectors": selectors, "allocationMode": "ExactCount", "count": 1}
    return {"name": f"r{number}", "exactly": exactly}


def _validated(claim: Object) -> list[FieldError]:
    with limited():
        return resource_claims.validate(claim)


def test_equal_expressions_are_compiled_once(compiled: list[str]) -> None:
    requests = [_request(i, ["device.driver == 'equal'"] * 32) for i in range(32)]
    assert _validated(_claim(requests)) == []
    assert compiled == ["device.driver == 'equal'"]


def test_each_of_the_equal_invalid_expressions_has_its_error(compiled: list[str]) -> None:
    errors = _validated(_claim([_request(0, ["device.driver == 1"] * 3)]))
    assert [error.field for error in errors] == [
        f"spec.devices.requests[0].exactly.selectors[{i}].cel.expression" for i in range(3)
    ]
    assert len({error.detail for error in errors}) == 1
    assert compiled == ["device.driver == 1"]


def test_compilation_ends_when_the_errors_fill_a_response(compiled: list[str]) -> None:
    requests = [_request(i, [f"device.driver == '{i}-{j}' && " + "a + " * 480 for j in range(32)]) for i in range(32)]
    errors = _validated(_claim(requests))
    explained = [error for error in errors if error is not UNCOUNTED]
    assert MAX_TEXT < sum(len(error.body()) for error in explained) < 1.1 * MAX_TEXT
    assert len(compiled) == len(explained) < 100
    assert len(errors) > len(explained)


def test_expressions_of_a_request_of_two_kinds_are_not_compiled(compiled: list[str]) -> None:
    """Upstream reports only that exactly one kind is required."""
    both = {
        **_request(0, ["device.both"]),
        "firstAvailable": [{"name": "s", **_request(0, ["device.both"])["exactly"]}],
    }
    errors = _validated(_claim([both]))
    assert [(error.field, error.detail) for error in errors] == [
        (
            "spec.devices.requests[0]",
            "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
        )
    ]
    assert compiled == []
