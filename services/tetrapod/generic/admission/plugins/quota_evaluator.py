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
    """The effect that one write has on the usage of quotas.

    A `Usage` maps resource names of quotas (such as `requests.cpu`) to quantities.

    Attributes:
        resource: the resource of the object.
        new: the object that will be stored.
    """

    @property
    def resource(self) -> GroupResource: ...

    @property
    def new(self) -> Object: ...

    @property
    def used(self) -> Usage:
        """The whole usage of the new object, including the part that the stored object already uses."""
        ...

    @property
    def alone(self) -> Usage:
        """The usage that the write adds if the scopes of quotas are ignored.

        The plugin uses it only to decide whether limitedResources apply to a write that no quota matches.
        """
        ...

    def names(self, quota: Object) -> list[str]:
        """Return the resource names by which the quota limits the object; [] if the quota's scopes exclude it."""
        ...

    def unspecified_resources(self, names: Sequence[str]) -> str:
        """Return, as an error text, which resources in `names` the object must specify but does not; "" if none."""
        ...

    def delta(self, quota: Object) -> Usage:
        """Return the usage that the write adds to a quota that limits the object; {} if it adds nothing."""
        ...


class Evaluator(Protocol):
    """Computes how a write changes the usage that ResourceQuota limits.

    Each service, such as core, has an implementation for the resources that it serves.
    """

    def updates(self, attributes: Attributes) -> bool:
        """Return whether an update of this resource or subresource can change usage; else ResourceQuota ignores it."""
        ...

    async def change(self, attributes: Attributes) -> Change | None:
        """Return the effect of the write, or None if quotas do not count it."""
        ...


@dataclass(frozen=True, slots=True)
class Created:
    """The `Change` for the creation of one object of a kind whose objects quotas only count.

    Attributes:
        resource: the resource of the object.
        new: the new object.
        used: the usage: a quantity of 1 for the name `count/RESOURCE.GROUP`.
    """

    resource: GroupResource
    new: Object
    used: Usage

    @property
    def alone(self) -> Usage:
        return self.used

    def names(self, quota: Object) -> list[str]:
        """Return the resource names by which the quota limits this object.

        The result is [] for a quota with scopes, because scopes select only pods and claims.
        """
        hard = (quota.get("status") or {}).get("hard") or {}
        return [] if scopes_of(quota) else [name for name in self.used if name in hard]

    def unspecified_resources(self, names: Sequence[str]) -> str:
        return ""

    def delta(self, quota: Object) -> Usage:
        return self.used


class ObjectCounts:
    """The evaluator of kinds whose objects quotas only count, under the resource name `count/RESOURCE.GROUP`."""

    def updates(self, attributes: Attributes) -> bool:
        return False

    async def change(self, attributes: Attributes) -> Created | None:
        new, resource = attributes.object, attributes.resource.group_resource
        return Created(resource, new, {count_name(resource): ONE}) if new is not None else None
