"""The engine's promises beside upstream's answers: bindings on demand, limits that hold, hostile texts that end soon."""

from __future__ import annotations

import time

import pytest

from tetrapod.machinery.cel import types
from tetrapod.machinery.cel.declarations import INT, object_decl
from tetrapod.machinery.cel.environment import Environment, Meter
from tetrapod.machinery.cel.errors import CompileError, CostLimitExceeded, EvaluationError, Interrupt
from tetrapod.machinery.cel.json_values import json_value
from tetrapod.machinery.cel.library.authorizer import AUTHORIZER, AuthorizerValue, CheckAttributes, Decision
from tetrapod.machinery.cel.values import Lazy, LazyFields, StructValue

DYNAMIC = Environment({"self": types.DYN, "authorizer": AUTHORIZER})


def test_a_binding_is_made_once_and_only_if_it_is_used() -> None:
    made = []

    def make() -> int:
        made.append(1)
        return 3

    assert DYNAMIC.compile("true || self == 3").evaluate({"self": Lazy(make)}) is True
    assert not made
    assert DYNAMIC.compile("self + self").evaluate({"self": Lazy(make)}) == 6
    assert len(made) == 1


def test_variables_are_computed_when_they_are_used_and_their_errors_are_errors_there() -> None:
    def fails() -> int:
        raise EvaluationError("division by zero")

    environment = Environment({"variables": object_decl("kubernetes.variables", {"a": INT, "b": INT})})
    bindings = {"variables": LazyFields("kubernetes.variables", {"a": lambda: 2, "b": fails})}
    assert environment.compile("variables.a == 2 || variables.b == 1").evaluate(bindings) is True
    with pytest.raises(EvaluationError, match="division by zero"):
        environment.compile("variables.b == 1").evaluate(bindings)


def test_an_interrupt_leaves_the_evaluation_at_once() -> None:
    def ask(asked: CheckAttributes) -> Decision:
        raise Interrupt(asked)

    program = DYNAMIC.compile("authorizer.group('').resource('pods').namespace('x').check('get').allowed() || true")
    with pytest.raises(Interrupt) as raised:
        program.evaluate({"authorizer": AuthorizerValue(ask, "alice")})
    assert raised.value.args[0] == CheckAttributes("alice", "get", "", "", "pods", "", "x")


def test_objects_of_patches_become_json() -> None:
    environment = Environment({"object": types.DYN}, patch_types=True)
    value = environment.compile("Object{spec: Object.spec{replicas: object.n + 1, ?x: optional.none()}}").evaluate({"object": {"n": 1}})
    assert isinstance(value, StructValue) and value.type_name == "Object"
    assert json_value(value) == {"spec": {"replicas": 2}}
    patch = environment.compile('JSONPatch{op: "add", path: "/a/" + jsonpatch.escapeKey("x/y~z"), value: [1]}').evaluate({})
    assert json_value(patch) == {"op": "add", "path": "/a/x~1y~0z", "value": [1]}


@pytest.mark.parametrize(
    "expression",
    [
        "self.all(x, self.all(y, self.all(z, x + y + z >= 0)))",
        "lists.range(9000000).size() > 0",
        "lists.range(5000).distinct().size() > 0",
        '"a".replace("", "' + "b" * 5000 + '").replace("", "' + "c" * 50000 + '").size() > 0',
        "self.map(x, self).flatten().map(y, self).flatten().size() > 0",
    ],
)
def test_what_costs_too_much_ends_soon(expression: str) -> None:
    program, meter = DYNAMIC.compile(expression), Meter()
    began = time.process_time()
    with pytest.raises(CostLimitExceeded):
        program.evaluate({"self": list(range(1000))}, meter)
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 90_000,
        "[" * 90_000,
        "!" * 99_000,
        "a" + ".a" * 40_000,
        "1" + "+1" * 40_000,
        "{" * 5000,
        "a ? " * 20_000,
        "x" * 200_000,
        '"' * 9999,
        "optional.of(self)" + ".optMap(x, x + x)" * 40 + ".value().size() > 0",
    ],
)
def test_hostile_texts_are_refused_soon(expression: str) -> None:
    began = time.process_time()
    with pytest.raises(CompileError):
        DYNAMIC.compile(expression)
    assert time.process_time() - began < 1


def test_deep_nesting_within_the_limit_is_fine() -> None:
    assert DYNAMIC.compile("(" * 100 + "1" + ")" * 100).evaluate({}) == 1
    assert DYNAMIC.compile("1" + " + 1" * 200).evaluate({}) == 201


def test_a_constant_part_that_fails_is_told_as_such() -> None:
    with pytest.raises(CompileError) as raised:
        DYNAMIC.compile("int('x') == 1")
    assert raised.value.full == "program instantiation failed: type conversion error from 'string' to 'int'"
    assert raised.value.output_type == types.BOOL  # callers tell of a wrong type first


def test_the_types_of_addresses_can_be_named() -> None:
    assert DYNAMIC.compile("type(ip('::1')) == net.IP && type(cidr('::1/64')) == net.CIDR").evaluate({}) is True
    with pytest.raises(CompileError):
        DYNAMIC.compile("kubernetes.Quantity")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ('"%s".format([1e21])', "1e+21"),
        ('"%s".format([123456789.0])', "1.23456789e+08"),
        ('"%s".format([[1e21]])', "[1000000000000000000000.000000]"),
        ('"%.2e".format([123456.789])', "1.234568×10⁰⁵"),
        ('"%.20e".format([-1.5])', "-1.500000×10⁰⁰"),
    ],
)
def test_floats_are_formatted_as_upstream_does(expression: str, text: str) -> None:
    assert DYNAMIC.compile(expression).evaluate({}) == text


@pytest.mark.parametrize("value", ['quantity("1")', 'ip("::1")', 'cidr("::/0")', 'semver("1.2.3")', 'url("https://x/")'])
def test_values_of_libraries_equal_nothing_else_by_an_error(value: str) -> None:
    assert DYNAMIC.compile(f"dyn({value}) == {value}").evaluate({}) is True
    assert DYNAMIC.compile(f"dyn({value}) == null").evaluate({}) is False
    with pytest.raises(EvaluationError, match="no such overload"):
        DYNAMIC.compile(f'dyn({value}) == "x"').evaluate({})


def test_bytes_that_are_no_text_are_not_formatted_as_one() -> None:
    with pytest.raises(EvaluationError, match="could not convert argument"):
        DYNAMIC.compile(r'"%s".format([b"\xff"])').evaluate({})
