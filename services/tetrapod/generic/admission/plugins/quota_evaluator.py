"""The effect of writes on quotas: the `Evaluator` interface, and `ObjectCounts`.

`ObjectCounts` is for kinds of which only the number counts.
Upstream: staging/src/k8s.io/apiserver/pkg/quota/v1, Evaluator; generic/evaluator.go
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tetrapod.generic.admission.interface import Attributes
from tetrapod.generic.admission.quota import ONE, Usage, count_name, scopes_of
from tetrapod.machinery.gvk import GroupResource, Object


class Change(Protocol):
    """The effect of one write on the usage of quotas.

    `resource` is the resource of the object, and `new` the object that will be stored. A `Usage` maps resource names
    of quotas (such as `requests.cpu`) to quantities.
    """

    @property
    def resource(self) -> GroupResource: ...

    @property
    def new(self) -> Object: ...

    @property
    def used(self) -> Usage:
        """The whole usage of the new object, including what the old object used already."""
        ...

    @property
    def alone(self) -> Usage:
        """The usage that the write adds, computed without regard to a quota's scopes; used if no quota matches."""
        ...

    def names(self, quota: Object) -> list[str]:
        """Return the resource names that the quota limits for this object; empty if the object is not in its scope."""
        ...

    def unspecified_resources(self, names: Sequence[str]) -> str:
        """Return which of these resources the object must specify but does not, separated by commas, or ""."""
        ...

    def delta(self, quota: Object) -> Usage:
        """Return the usage that the write adds to a quota that matches; empty if none."""
        ...


class Evaluator(Protocol):
    """Computes the effect of writes on usage, for the kinds of one service."""

    def updates(self, attributes: Attributes) -> bool:
        """Return whether this update may increase the usage; if not, quotas ignore it."""
        ...

    async def change(self, attributes: Attributes) -> Change | None:
        """Return the effect of the write, or None if quotas do not count it."""
        ...


@dataclass(frozen=True, slots=True)
class Created:
    """The effect of creating one object of a kind of which only the number counts.

    Attributes:
        resource: the kind's resource.
        new: the new object.
        used: the quota that it uses, by the resource names of quotas.
    """

    resource: GroupResource
    new: Object
    used: Usage

    @property
    def alone(self) -> Usage:
        return self.used

    def names(self, quota: Object) -> list[str]:
        """Return the resource names in the quota that limit this object.

        A quota with scopes limits nothing here, because scopes select only pods and claims.
        """
        hard = (quota.get("status") or {}).get("hard") or {}
        return [] if scopes_of(quota) else [name for name in self.used if name in hard]

    def unspecified_resources(self, names: Sequence[str]) -> str:
        return ""

    def delta(self, quota: Object) -> Usage:
        return self.used


class ObjectCounts:
    """The evaluator of kinds of which only the number counts, by the resource name `count/RESOURCE.GROUP`."""

    def updates(self, attributes: Attributes) -> bool:
        return False

    async def change(self, attributes: Attributes) -> Created | None:
        new, resource = attributes.object, attributes.resource.group_resource
        return Created(resource, new, {count_name(resource): ONE}) if new is not None else None
