"""Strategies that many kinds share: spec with generation, status as a subresource of its own.

Most built-in kinds are one of these with names of its own; what upstream writes as `deploymentStrategy` and
`deploymentStatusStrategy` is `class Deployments(SpecStatusStrategy)` and `status_strategy(Deployments())`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.entry import copy_object
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.metadata import validate_immutable

MetadataRule: TypeAlias = Literal["all", "labels", "none"]
"""What of metadata a status update leaves as it is: all that users own, the labels (Deployment, ReplicaSet …), nothing."""
_USERS_METADATA: Final = ("deletionTimestamp", "generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences")
_RESTORED: Final[Mapping[str, tuple[str, ...]]] = {"all": _USERS_METADATA, "labels": ("labels",), "none": ()}


class SpecStatusStrategy(Strategy):
    """A kind with spec and status: status belongs to its subresource, a change of spec is a new generation."""

    has_status = True
    initial_status: Mapping[str, Any] | None = {}
    generation: tuple[str, ...] | None = ("spec",)

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]


class StatusStrategy(Strategy):
    """The update of `parent`'s status: everything else stays as it is.

    A kind with rules of its own for status subclasses it and overrides `validate_update`, after calling `prepare_for_update`.
    `kept` are the top-level fields that belong to the main resource.
    """

    allow_create_on_update = False
    metadata: MetadataRule = "none"
    kept: Sequence[str] = ("spec",)

    def __init__(self, parent: Strategy) -> None:
        self.parent = parent
        self.namespaced = parent.namespaced
        self.allow_unconditional_update = parent.allow_unconditional_update
        self.qualified_finalizers, self.repeats_errors = parent.qualified_finalizers, parent.repeats_errors

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        return self.parent.validate_name(name, prefix)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        for part in self.kept:
            _keep(new, old, part)
        for part in _RESTORED[self.metadata]:
            _keep(new["metadata"], old["metadata"], part)

    def canonicalize(self, obj: Object) -> None:
        self.parent.canonicalize(obj)

    def may_delete_on_update(self, new: Object, old: Object) -> bool:
        return self.parent.may_delete_on_update(new, old)

    def ttl(self, obj: Object) -> int:
        return self.parent.ttl(obj)

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [(part,) for part in self.kept] + [("metadata", part) for part in _RESTORED[self.metadata]]


def status_strategy(parent: Strategy, *, metadata: MetadataRule = "none", kept: Sequence[str] = ("spec",)) -> StatusStrategy:
    """The usual `/status` of a kind. `metadata` says what of it stays: upstream differs from kind to kind."""
    strategy = StatusStrategy(parent)
    strategy.metadata, strategy.kept = metadata, kept
    return strategy


def immutable(new: Object, old: Object, *path: str) -> list[FieldError]:
    """The complaint about one field that an update must not change."""
    return validate_immutable(_at(new, path), _at(old, path), ".".join(path))


def _at(obj: Any, path: Sequence[str]) -> Any:
    for name in path:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj


def _keep(new: Object, old: Object, name: str) -> None:
    """As `old` has it; copied, for strategies may change `new` but never `old`."""
    value = old.get(name)
    if value is None:
        new.pop(name, None)
    else:
        new[name] = copy_object({"value": value})["value"] if isinstance(value, dict | list) else value
