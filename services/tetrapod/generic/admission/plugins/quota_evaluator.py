"""What a write means to quotas: `Evaluator` says, for the kinds that it knows; `ObjectCounts` for all others.

Upstream: k8s.io/apiserver/pkg/quota/v1 (Evaluator), and generic/evaluator.go below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tetrapod.generic.admission.interface import Attributes
from tetrapod.generic.quota.charge import Usage
from tetrapod.generic.quota.counts import ONE, count_name
from tetrapod.generic.quota.scopes import scopes_of
from tetrapod.machinery.gvk import GroupResource, Object


class Change(Protocol):
    """What a write does to what is used."""

    @property
    def resource(self) -> GroupResource: ...

    @property
    def new(self) -> Object: ...

    @property
    def used(self) -> Usage:
        """By the object as it will be."""
        ...

    @property
    def alone(self) -> Usage:
        """What the write adds where no quota concerns it."""
        ...

    def names(self, quota: Object) -> list[str]:
        """What the quota limits of such objects; nothing where this one is not in its scope."""
        ...

    def unspecified(self, names: Sequence[str]) -> str:
        """What the object must say about these and does not; "" where nothing is missing."""
        ...

    def delta(self, quota: Object) -> Usage:
        """What the write adds to the usage of a quota that it concerns."""
        ...


class Evaluator(Protocol):
    def updates(self, attributes: Attributes) -> bool:
        """Whether this update may use more than before."""
        ...

    async def change(self, attributes: Attributes) -> Change | None:
        """None: nothing that a quota looks at."""
        ...


@dataclass(frozen=True, slots=True)
class Created:
    """One object more."""

    resource: GroupResource
    new: Object
    used: Usage

    @property
    def alone(self) -> Usage:
        return self.used

    def names(self, quota: Object) -> list[str]:
        """Quotas with scopes are about pods and claims alone."""
        hard = (quota.get("status") or {}).get("hard") or {}
        return [] if scopes_of(quota) else [name for name in self.used if name in hard]

    def unspecified(self, names: Sequence[str]) -> str:
        return ""

    def delta(self, quota: Object) -> Usage:
        return self.used


class ObjectCounts:
    """An evaluator of kinds of which nothing but their number counts."""

    def updates(self, attributes: Attributes) -> bool:
        return False

    async def change(self, attributes: Attributes) -> Created | None:
        new, resource = attributes.object, attributes.resource.group_resource
        return Created(resource, new, {count_name(resource): ONE}) if new is not None else None
