"""`PolicySource`: the current policies that have bindings, with these bindings and the compiled form.

Upstream applies changes of policies once a second; here the next request sees them. Policies are in the order of their
names; upstream's order is random.
Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_source.go
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, Generic, TypeVar

from tetrapod.generic.admission.manifests.source import Manifests
from tetrapod.generic.admission.plugin_dependencies import Background
from tetrapod.generic.admission.policy.definitions import Binding, Policy
from tetrapod.generic.registry.converted_objects import ConvertedObjects
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.gvk import GroupVersionKind

_READY_SECONDS: Final = 10.0

E = TypeVar("E")


@dataclass(slots=True)
class Hook(Generic[E]):
    """A policy with its bindings.

    Attributes:
        policy: the policy.
        bindings: its bindings, at least one.
        evaluator: returns the compiled policy. It is compiled at the first call after a change of the policy.
    """

    policy: Policy
    bindings: list[Binding]
    evaluator: Callable[[], E]


class PolicySource(Generic[E]):
    """The policies and bindings of one plugin, kept current by watches.

    Args:
        storages: provides the storages of both resources.
        background: starts a coroutine that runs until the server stops.
        policies: the resource of the policies.
        bindings: the resource of the bindings.
        make: compiles a policy.

    Attributes:
        kind: the kind of the policies.
    """

    def __init__(
        self,
        storages: StorageFactory,
        background: Background,
        policies: StorageConfig,
        bindings: StorageConfig,
        make: Callable[[Policy], E],
    ) -> None:
        self.kind = policies.kind
        self._background = background
        self._names = (policies.prefix, bindings.prefix)
        self._policies = ConvertedObjects(storages.resource(policies), Policy.from_entry)
        self._bindings = ConvertedObjects(storages.resource(bindings), Binding.from_entry)
        self._policies.changed.append(self._forget)
        self._bindings.changed.append(self._forget)
        self._make = make
        self._compiled: dict[str, tuple[int, E]] = {}
        self._hooks: list[Hook[E]] | None = None
        self._started = False

    def _forget(self) -> None:
        self._hooks = None

    @property
    def synced(self) -> bool:
        """Whether policies and bindings have been read. The first access starts the watches of both."""
        if not self._started:
            self._started = True
            self._background(f"informer/{self._names[0]}", self._policies.run())
            self._background(f"informer/{self._names[1]}", self._bindings.run())
        return self._policies.synced.is_set() and self._bindings.synced.is_set()

    async def ready(self) -> bool:
        """Wait up to ten seconds until policies and bindings have been read, and return whether they have."""
        if self.synced:
            return True
        try:
            async with asyncio.timeout(_READY_SECONDS):
                await self._policies.synced.wait()
                await self._bindings.synced.wait()
        except TimeoutError:
            return False
        return True

    @property
    def hooks(self) -> list[Hook[E]]:
        """The policies that have bindings, in the order of their names.

        It is the same list until a policy or binding changes, and must not be modified.
        """
        if self._hooks is None:
            self._hooks = self._join()
        return self._hooks

    def param_kinds(self) -> set[GroupVersionKind]:
        """Return the kinds of parameters of the policies that have bindings."""
        return {hook.policy.param_kind for hook in self.hooks if hook.policy.param_kind is not None}

    def hooks_in(self, manifests: Manifests) -> list[Hook[E]]:
        """Return the policies in manifest files that have bindings, in the order of their names."""
        bound = _by_policy(map(Binding.from_object, manifests.bindings))
        policies = map(Policy.from_object, manifests.objects)
        return [Hook(p, bound[p.name], cache(partial(self._make, p))) for p in policies if p.name in bound]

    def _join(self) -> list[Hook[E]]:
        bound = _by_policy(self._bindings.items)
        self._compiled = {name: compiled for name, compiled in self._compiled.items() if name in bound}
        return [Hook(p, bound[p.name], self._compiler(p)) for p in self._policies.items if p.name in bound]

    def _compiler(self, policy: Policy) -> Callable[[], E]:
        def compiled() -> E:
            cached = self._compiled.get(policy.name)
            if cached is None or cached[0] != policy.revision:
                cached = self._compiled[policy.name] = (policy.revision, self._make(policy))
            return cached[1]

        return compiled


def _by_policy(bindings: Iterable[Binding]) -> dict[str, list[Binding]]:
    """Return the bindings by the name of their policy, in their order."""
    bound: dict[str, list[Binding]] = {}
    for binding in bindings:
        bound.setdefault(binding.policy, []).append(binding)
    return bound
