"""Tests that policies, webhooks, conversion and audit do not keep the event loop from running, however large objects
are and however many bindings a policy has.
"""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tetrapod.extensions.custom import converted_storage
from tetrapod.generic.admission.policy import evaluation
from tetrapod.generic.admission.policy.evaluation import Activation, BudgetExceeded
from tetrapod.generic.admission.policy.expressions import BOOL, Composer
from tetrapod.generic.admission.webhook import mutating
from tetrapod.generic.audit import objects
from tetrapod.generic.http.request import Response
from tetrapod.machinery.cel.environment import RUNTIME_BUDGET, Meter, Program
from tetrapod.machinery.schema import number_conversion
from tetrapod.machinery.serializer import json
from tetrapod.machinery.types import load

_KEYS = "object.data.all(k, object.data[k].size() < 10)"


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, int]]:
    """Return the list of all evaluations: whether each runs in the main thread, and its cost there."""
    evaluated: list[tuple[bool, int]] = []
    evaluate = Program.evaluate

    def counted(self: Program, bindings: Any, meter: Meter, limit: int) -> Any:
        try:
            return evaluate(self, bindings, meter, limit)
        finally:
            evaluated.append((threading.current_thread() is threading.main_thread(), meter.cost))

    monkeypatch.setattr(Program, "evaluate", counted)
    return evaluated


def _bindings(keys: int) -> dict[str, Any]:
    return {"object": {"data": {f"k{i}": "v" for i in range(keys)}}, "oldObject": None, "request": {}, "params": None}


def _compiled(*variables: str) -> tuple[Any, Composer]:
    composer = Composer(params=False)
    for number, expression in enumerate(variables):
        composer.variable(f"v{number}", expression)
    return composer.compile(f"variables.v0 && {_KEYS}" if variables else _KEYS, BOOL), composer


async def test_a_cheap_expression_is_evaluated_on_the_event_loop(evaluations: list[tuple[bool, int]]) -> None:
    compiled, composer = _compiled()
    outcome, _ = await Activation(_bindings(10), composer.variables, None, large=False).evaluate_one(
        compiled, RUNTIME_BUDGET
    )
    assert outcome.value is True
    assert [on_loop for on_loop, _ in evaluations] == [True]


@pytest.mark.parametrize("variables", [(), (_KEYS,)], ids=["expression", "variable"])
async def test_a_costly_expression_is_evaluated_in_a_thread_with_the_same_result(
    evaluations: list[tuple[bool, int]], monkeypatch: pytest.MonkeyPatch, variables: tuple[str, ...]
) -> None:
    compiled, composer = _compiled(*variables)
    bindings = _bindings(20_000)
    outcome, left = await Activation(bindings, composer.variables, None, large=False).evaluate_one(
        compiled, RUNTIME_BUDGET
    )
    assert outcome.value is True
    assert any(not on_loop for on_loop, _ in evaluations)
    assert sum(cost for on_loop, cost in evaluations if on_loop) <= 2 * evaluation.QUICK_COST
    monkeypatch.setattr(evaluation, "QUICK_COST", RUNTIME_BUDGET)
    at_once = await Activation(bindings, composer.variables, None, large=False).evaluate_one(compiled, RUNTIME_BUDGET)
    assert (at_once[0].value, at_once[1]) == (True, left)


async def test_expressions_of_one_activation_share_the_cost_on_the_event_loop(
    evaluations: list[tuple[bool, int]],
) -> None:
    compiled, composer = _compiled()
    activation = Activation(_bindings(2_000), composer.variables, None, large=False)
    await activation.all([compiled] * 20, RUNTIME_BUDGET)
    assert sum(cost for on_loop, cost in evaluations if on_loop) <= 2 * evaluation.QUICK_COST


async def test_expressions_about_large_objects_are_evaluated_in_a_thread_from_the_start(
    evaluations: list[tuple[bool, int]],
) -> None:
    compiled, composer = _compiled()
    activation = Activation(_bindings(10), composer.variables, None, large=True)
    outcome, _ = await activation.evaluate_one(compiled, RUNTIME_BUDGET)
    assert outcome.value is True
    assert [on_loop for on_loop, _ in evaluations] == [False]


@pytest.mark.parametrize(
    "expression",
    [
        "object.data.k0.matches('a[ab]{999}c')",
        "object.data.k0.find('a[ab]{99}c') != ''",
        "object.data.k0.findAll('.').size() < 0",
        "lists.range(900000).size() < 0",
        "sets.contains(lists.range(150), lists.range(150)) && false",
        "object.data.k0.split('').exists(c, '%s'.format([object]) == '')",
    ],
)
async def test_a_call_that_takes_longer_than_its_cost_is_executed_in_a_thread(
    evaluations: list[tuple[bool, int]], expression: str
) -> None:
    composer = Composer(params=False)
    compiled = composer.compile(expression, BOOL)
    bindings = {**_bindings(0), "object": {"data": {"k0": "ab" * 10_000}}}
    activation = Activation(bindings, composer.variables, None, large=False)
    outcome, _ = await activation.evaluate_one(compiled, RUNTIME_BUDGET)
    assert outcome.value is False or "cost limit exceeded" in outcome.error
    assert [on_loop for on_loop, _ in evaluations] == [True, False]


async def test_the_budget_of_a_policy_also_ends_evaluations_in_a_thread() -> None:
    compiled, composer = _compiled()
    with pytest.raises(BudgetExceeded):
        await Activation(_bindings(20_000), composer.variables, None, large=False).evaluate_one(compiled, 50_000)


def test_the_object_is_not_encoded_for_webhooks_that_are_not_called_again() -> None:
    reinvocation = mutating._Reinvocation()
    reinvocation.called(SimpleNamespace(uid="a", reinvocable=False))  # type: ignore[arg-type]
    assert not reinvocation.pending
    reinvocation.called(SimpleNamespace(uid="b", reinvocable=True))  # type: ignore[arg-type]
    assert reinvocation.pending


@pytest.mark.parametrize(
    ("sizes", "portions"),
    [
        ([], []),
        ([10 << 20], [1]),
        ([600_000] * 4, [1, 1, 1, 1]),
        ([400_000] * 5, [2, 2, 1]),
        ([1000] * 450, [200, 200, 50]),
    ],
)
def test_entries_are_converted_in_portions_of_limited_size(sizes: list[int], portions: list[int]) -> None:
    entries: list[Any] = [SimpleNamespace(raw=b"x" * size) for size in sizes]
    divided = list(converted_storage._portions(entries))
    assert [len(portion) for portion in divided] == portions
    assert [entry for portion in divided for entry in portion] == entries


@pytest.mark.parametrize(
    ("media_type", "encoding", "size", "costly"),
    [
        (b"application/json", b"", 30_000, False),
        (b"application/json", b"", 40_000, True),
        (b"application/json", b"gzip", 5_000, True),
        (b"application/yaml", b"", 5_000, True),
        (b"application/yaml", b"", 3_000, False),
    ],
)
def test_large_responses_are_audited_in_a_thread(media_type: bytes, encoding: bytes, size: int, costly: bool) -> None:
    response = Response(200, [(b"content-type", media_type), (b"content-encoding", encoding)], b"")
    assert objects.is_costly(response, b"x" * size) is costly


@pytest.mark.parametrize("text", ["<é&ü>\u2028\u2029", "\u2028", "a<", "€&"])
def test_a_large_text_is_escaped_in_pieces_as_at_once(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    data = (text * 500).encode()
    at_once = json.go_escaped(data)
    for size in (7, 8, 9, 10):
        monkeypatch.setattr(json, "_ESCAPED_AT_ONCE", size)
        assert json.go_escaped(data) == at_once


@pytest.mark.parametrize("distance", [65_530, 65_536, 65_540])
def test_unusual_numbers_are_found_at_the_ends_of_slices(distance: int) -> None:
    node = load("io.k8s.api.core.v1.ContainerPort")
    text = "x" * distance
    assert number_conversion.as_filled({"name": text, "hostPort": 4_294_967_297}, node) == {"name": text, "hostPort": 1}
