"""`Chain`: admission plugins in their order: all that mutate, then (later, on the finished object) all that validate.

Built once from one readable list; the endpoints call `admit` before, the registry calls `validate` after validation.
Follows k8s.io/apiserver/pkg/admission/chain.go, metrics/metrics.go and reinvocation.go.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from tetrapod.generic.admission import metrics
from tetrapod.generic.admission.interface import Attributes, MutatingPlugin, Plugin, ValidatingPlugin
from tetrapod.generic.tracing.spans import NOTHING, current, detail


class _Step(NamedTuple):
    """One plugin in one phase."""

    name: str
    operations: frozenset[str]
    handles: Callable[[Attributes], bool]
    call: Callable[[Attributes], Awaitable[None]]


class Chain:
    """Implements `AdmissionChain`. A plugin is asked only in the phases for which it has a method."""

    def __init__(self, plugins: Sequence[Plugin | MutatingPlugin | ValidatingPlugin]) -> None:
        self.names = [plugin.name for plugin in plugins]
        self._mutating = _steps(plugins, "admit")
        self._validating = _steps(plugins, "validate")
        self._operations = frozenset[str]().union(*(plugin.operations for plugin in plugins))

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
        operation, traced, rejected = attributes.operation, current() is not None, True
        began = clock = time.perf_counter()
        step: _Step | None = None
        try:
            for step in steps:
                if operation not in step.operations or not step.handles(attributes):
                    continue
                with detail(f"admission {step.name}") if traced else NOTHING:
                    await step.call(attributes)
                now = time.perf_counter()
                metrics.plugin(step.name, phase, operation, now - clock, False)
                clock = now
            rejected = False
        finally:
            now = time.perf_counter()
            if rejected and step is not None:
                metrics.plugin(step.name, phase, operation, now - clock, True)
            metrics.step(phase, operation, now - began, rejected)


def _steps(plugins: Sequence[Plugin | MutatingPlugin | ValidatingPlugin], method: str) -> list[_Step]:
    return [_Step(p.name, p.operations, p.handles, getattr(p, method)) for p in plugins if hasattr(p, method)]
