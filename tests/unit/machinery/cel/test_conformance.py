"""Tests of CEL expressions against upstream's results: error texts, types, cost estimates, values and costs
(tests/facts/cel).

Every case was run through kube-apiserver v1.37.1's own CEL environment: cel-go v0.29.2 and k8s.io/apiserver/pkg/cel.
Map keys have no order there; no case depends on one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tetrapod.machinery.cel import types
from tetrapod.machinery.cel.environment import Environment, Meter, Program
from tetrapod.machinery.cel.errors import CelError, CompileError
from tetrapod.machinery.cel.json_values import json_value
from tetrapod.machinery.cel.library.authorizer import AUTHORIZER
from tetrapod.machinery.cel.schema_types import declared
from tetrapod.machinery.cel.schema_values import bound
from tetrapod.machinery.schema.structural import build

SUITES: Mapping[str, Any] = json.loads((Path(__file__).parents[3] / "facts/cel/expressions.json").read_text())


def _environment(suite: Mapping[str, Any]) -> tuple[Environment, dict[str, Any]]:
    if "schema" not in suite:
        variables = {"self": types.DYN, "oldSelf": types.DYN, "authorizer": AUTHORIZER}
        return Environment(variables), {"self": suite["self"], "oldSelf": {"a": 1}}
    node = build(suite["schema"])
    decl = declared(node)
    assert decl is not None
    decl = decl.named("selfType1")
    environment = Environment({"self": decl, "oldSelf": decl, "authorizer": AUTHORIZER})
    return environment, {"self": bound(node, suite["self"]), "oldSelf": bound(node, suite["old"])}


def _outcome(program: Program, bindings: dict[str, Any], case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result for the case, in the form of upstream's recorded result."""
    estimate, meter = program.cost_estimate(), Meter()
    found: dict[str, Any] = {"type": str(program.output_type), "min": estimate.min, "max": estimate.max}
    try:
        value = program.evaluate(bindings, meter)
    except CelError as error:
        found["error"] = str(error)
    else:
        if "value" in case:
            found["value"] = json_value(value)
    return {**found, "cost": meter.cost}


@pytest.mark.parametrize("name", SUITES)
def test_expressions_have_upstreams_results(name: str) -> None:
    suite = SUITES[name]
    environment, bindings = _environment(suite)
    wrong = []
    for case in suite["cases"]:
        try:
            program = environment.compile(case["expr"])
        except CompileError as error:
            found = {"compile" if error.output_type is None else "instantiation": str(error)}
        else:
            found = _outcome(program, bindings, case)
        wanted = {key: value for key, value in case.items() if key != "expr"}
        if found != wanted:
            wrong.append((case["expr"], wanted, found))
    assert not wrong, f"{len(wrong)} of {len(suite['cases'])}: {wrong[:5]}"
