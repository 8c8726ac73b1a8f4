"""`Chain`: admission plugins in their order: all that mutate, then (later, on the finished object) all that validate.

Built once from one readable list; the endpoints call `admit` before, the registry calls `validate` after validation.
Follows k8s.io/apiserver/pkg/admission/chain.go, metrics/metrics.go and reinvocation.go.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol

from tetrapod.generic.admission.interface import Attributes, MutatingPlugin, Plugin, ValidatingPlugin
from tetrapod.generic.tracing.spans import NOTHING, current, detail


class Observer(Protocol):
    def __call__(self, plugin: str, phase: str, operation: str, seconds: float, rejected: bool) -> None:
        """`phase` is "admit" or "validate" (upstream: apiserver_admission_controller_admission_duration_seconds)."""
        ...


class _Step(NamedTuple):
    """One plugin in one phase."""

    name: str
    operations: frozenset[str]
    handles: Callable[[Attributes], bool]
    call: Callable[[Attributes], Awaitable[None]]


class Chain:
    """Implements `AdmissionChain`. A plugin is asked only in the phases for which it has a method."""

    def __init__(self, plugins: Sequence[Plugin | MutatingPlugin | ValidatingPlugin], observe: Observer | None = None) -> None:
        self.names = [plugin.name for plugin in plugins]
        self._mutating = _steps(plugins, "admit")
        self._validating = _steps(plugins, "validate")
        self._operations = frozenset[str]().union(*(plugin.operations for plugin in plugins))
        self._observe = observe

    def handles(self, operation: str) -> bool:
        return operation in self._operations

    async def admit(self, attributes: Attributes) -> None:
        """Let the mutating plugins change `attributes.object`; again, once, where one asked for it (`reinvoke`)."""
        await self._run(self._mutating, "admit", attributes)
        if attributes.reinvoke and not attributes.is_reinvocation:
            attributes.is_reinvocation = True
            await self._run(self._mutating, "admit", attributes)

    async def validate(self, attributes: Attributes) -> None:
        await self._run(self._validating, "validate", attributes)

    async def _run(self, steps: Sequence[_Step], phase: str, attributes: Attributes) -> None:
        operation, traced = attributes.operation, current() is not None
        for step in steps:
            if operation not in step.operations or not step.handles(attributes):
                continue
            with detail(f"admission {step.name}") if traced else NOTHING:
                if self._observe is None:
                    await step.call(attributes)
                else:
                    await _observed(step, phase, attributes, self._observe)


def _steps(plugins: Sequence[Plugin | MutatingPlugin | ValidatingPlugin], method: str) -> list[_Step]:
    return [_Step(p.name, p.operations, p.handles, getattr(p, method)) for p in plugins if hasattr(p, method)]


async def _observed(step: _Step, phase: str, attributes: Attributes, observe: Observer) -> None:
    start, rejected = time.perf_counter(), True
    try:
        await step.call(attributes)
        rejected = False
    finally:
        observe(step.name, phase, attributes.operation, time.perf_counter() - start, rejected)
