"""`Chain`: the admission plugins in order: first all mutating ones, later, on the final object, all validating ones.

It is built once from a list. The endpoints call `admit`; the registry calls `validate` after its own validation.
Upstream: staging/src/k8s.io/apiserver/pkg/admission/chain.go, metrics/metrics.go, reinvocation.go
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from tetrapod.generic.admission import metrics
from tetrapod.generic.admission.interface import Attributes, MutatingPlugin, Plugin, ValidatingPlugin
from tetrapod.generic.observability.tracing.spans import NOTHING, current, detail


class _Step(NamedTuple):
    """A plugin in one of the two phases, mutating or validating.

    Attributes:
        name: the name of the plugin.
        operations: the operations that the plugin handles, such as CREATE.
        handles: returns whether the plugin handles a request that has one of these operations.
        call: the plugin's method `admit` or `validate`.
    """

    name: str
    operations: frozenset[str]
    handles: Callable[[Attributes], bool]
    call: Callable[[Attributes], Awaitable[None]]


class Chain:
    """The implementation of `AdmissionChain`. A plugin is called only in the phases for which it has a method.

    Args:
        plugins: the plugins, in the order in which they are called.

    Attributes:
        names: the names of the plugins, in the same order.
    """

    def __init__(self, plugins: Sequence[Plugin | MutatingPlugin | ValidatingPlugin]) -> None:
        self.names = [plugin.name for plugin in plugins]
        self._mutating = _steps(plugins, "admit")
        self._validating = _steps(plugins, "validate")
        self._operations = frozenset[str]().union(*(plugin.operations for plugin in plugins))

    def handles(self, operation: str) -> bool:
        """Return whether any plugin handles the operation ("CREATE", …). If not, the caller need not run the chain."""
        return operation in self._operations

    async def admit(self, attributes: Attributes) -> None:
        """Run the mutating plugins, which may modify or replace `attributes.object`.

        If one of them sets `attributes.reinvoke`, all are run once more.

        Raises:
            StatusError: a plugin rejects the request.
        """
        await self._run(self._mutating, "admit", attributes)
        if attributes.reinvoke and not attributes.is_reinvocation:
            attributes.is_reinvocation = True
            await self._run(self._mutating, "admit", attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Run the validating plugins. Raises StatusError if one rejects the request."""
        await self._run(self._validating, "validate", attributes)

    async def _run(self, steps: Sequence[_Step], phase: str, attributes: Attributes) -> None:
        operation, traced, rejected = attributes.operation, current() is not None, True
        started = step_started = time.perf_counter()
        step: _Step | None = None
        try:
            for step in steps:
                if operation not in step.operations or not step.handles(attributes):
                    continue
                with detail(f"admission {step.name}") if traced else NOTHING:
                    await step.call(attributes)
                now = time.perf_counter()
                metrics.plugin(step.name, phase, operation, now - step_started, False)
                step_started = now
            rejected = False
        finally:
            now = time.perf_counter()
            if rejected and step is not None:
                metrics.plugin(step.name, phase, operation, now - step_started, True)
            metrics.step(phase, operation, now - started, rejected)


def _steps(plugins: Sequence[Plugin | MutatingPlugin | ValidatingPlugin], method: str) -> list[_Step]:
    return [_Step(p.name, p.operations, p.handles, getattr(p, method)) for p in plugins if hasattr(p, method)]
