"""The keyword `pattern` of schemas does not keep the event loop from running, and compiled patterns have a bound."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tetrapod.generic.registry.context import Context, without_delay
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.regular_expressions import compile_pattern
from tetrapod.machinery.long_work import TakesTooLong, on_event_loop
from tetrapod.machinery.schema import validation
from tetrapod.machinery.schema.structural import build
from tetrapod.machinery.schema.structural_rules import validate_structural

SLOW = "(?i)" + "[a-zé]" * 3000
"""RE2 takes 0.2 s for a text of 15,000 characters."""


async def on_loop(work: Callable[[], list[FieldError]]) -> tuple[list[bool], list[FieldError]]:
    """Return where `work` ran as that of a small object: whether on the event loop, and the result of the last run."""
    runs: list[bool] = []
    results: list[FieldError] = []

    def run() -> None:
        runs.append(threading.current_thread() is threading.main_thread())
        results[:] = work()

    await without_delay(Context(), run)
    return runs, results


async def test_a_slow_pattern_of_a_long_text_is_matched_in_a_thread() -> None:
    node = build({"type": "object", "properties": {"a": {"type": "string", "pattern": SLOW}}})
    text = "é" * 2_999
    runs, errors = await on_loop(lambda: validation.validate(node, {"a": text}))
    assert runs == [True, False]
    assert [error.detail for error in errors] == [f"a in body should match '{SLOW}'"]
    assert validation.validate(node, {"a": f"{text}A"}) == []


def test_the_schema_of_many_patterns_is_validated_in_a_thread_after_the_first_slow_one() -> None:
    schema = {"type": "object", "properties": {f"p{i}": {"type": "string", "pattern": f"x{{{i}}}"} for i in range(9)}}
    with on_event_loop(-1), pytest.raises(TakesTooLong):
        validate_structural(schema, "")
    assert validate_structural(schema, "") == []


def test_large_programs_of_short_patterns_are_evicted_from_the_cache() -> None:
    """Each of these takes 19 MB."""
    first, *_ = [compile_pattern(rf"\pL{{{count}}}") for count in range(396, 400)]
    assert compile_pattern(r"\pL{399}") is compile_pattern(r"\pL{399}")
    assert compile_pattern(r"\pL{396}") is not first
