"""Strategies for the common pattern of spec and status, where status is a subresource.

`SpecStatusStrategy` is for the main resource: a change of spec increments the generation, and status is not updated.
`StatusStrategy` is for `/status`: it updates only status and, depending on the kind as upstream, metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.gated_fields import NO_GATES, FieldGates
from tetrapod.generic.registry.strategy import Revalidation, Strategy
from tetrapod.machinery.copying import copy_value
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.metadata import FIELD_ORDER

_NOT_KEPT: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
ALL_METADATA: Final = (
    "deletionTimestamp",
    "generation",
    "selfLink",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
)
"""The argument `keep_metadata` of `StatusStrategy` for kinds whose status updates change none of these fields
(upstream: metav1.ResetObjectMetaForStatus).
"""
WHOLE_METADATA: Final = tuple(name for name in FIELD_ORDER if name not in ("managedFields", "resourceVersion"))
"""The argument `keep_metadata` of `StatusStrategy` for kinds whose status updates restore the old metadata, except
managedFields and resourceVersion.
"""
ValidateStatus = Callable[[Object, Object], list[FieldError]]


class SpecStatusStrategy(Strategy):
    """The strategy of a main resource with spec and status.

    A new object has an empty status, updates do not change status, and a change of spec increments the generation.
    """

    has_status = True
    initial_status: Mapping[str, Any] | None = {}
    generation: tuple[str, ...] | None = ("spec",)

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]


class StatusStrategy(Strategy):
    """The strategy of a `/status` subresource, whose updates change only status and metadata.

    Args:
        main: the strategy of the main resource, for defaults, names and TTL.
        keep_metadata: the metadata fields that a status update does not change ("labels" for Deployment).
        validate: returns the errors of an update, called with (new, old); None accepts all.
        revalidates_generate_name: see `Strategy.revalidates_generate_name`.
        gated: the fields that belong to feature gates.
        tabular: whether the status can be requested as a Table.
        validates_finalizers: whether `validate` also checks that finalizers are qualified, for kinds whose errors about
            finalizers follow those of the status.
    """

    def __init__(
        self,
        main: Strategy,
        *,
        keep_metadata: tuple[str, ...] = (),
        validate: ValidateStatus | None = None,
        revalidates_generate_name: Revalidation = "never",
        gated: FieldGates = NO_GATES,
        tabular: bool = True,
        validates_finalizers: bool = False,
    ) -> None:
        self.main = main
        self.namespaced = main.namespaced
        self.qualified_finalizers = main.qualified_finalizers and not validates_finalizers
        self.repeats_errors = main.repeats_errors
        self.hand_written = main.hand_written
        self.revalidates_generate_name = revalidates_generate_name
        self._keep_metadata = keep_metadata
        self._validate = validate
        self.gated_fields = gated
        if not tabular:
            self.tabular = False

    def default(self, obj: Object, version: str) -> None:
        self.main.default(obj, version)

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        return self.main.validate_name(name, prefix)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        for key in [k for k in new if k not in _NOT_KEPT and k not in old]:
            del new[key]
        for key, value in old.items():
            if key not in _NOT_KEPT:
                new[key] = copy_value(value)
        for key in self._keep_metadata:
            new["metadata"].pop(key, None)
            if key in old["metadata"]:
                new["metadata"][key] = copy_value(old["metadata"][key])

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return self._validate(new, old) if self._validate else []

    def may_delete_on_update(self, new: Object, old: Object) -> bool:
        return self.main.may_delete_on_update(new, old)

    def allows_unconditional_update(self, version: str) -> bool:
        return self.main.allows_unconditional_update(version)

    def canonicalize(self, obj: Object) -> None:
        self.main.canonicalize(obj)

    def read_back(self, obj: Object) -> None:
        self.main.read_back(obj)

    def ttl(self, obj: Object) -> int:
        return self.main.ttl(obj)

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        """Return the paths that a status update ignores: spec, and the metadata fields that it does not change.

        They are the same in each version. If there are several such metadata fields, the whole metadata is listed, as
        upstream.
        """
        several = len(self._keep_metadata) > 1
        return [("spec",), *([("metadata",)] if several else [("metadata", key) for key in self._keep_metadata])]


class PlainStatusStrategy(StatusStrategy):
    """The strategy of `/status` for kinds whose finalizers need no domain in a status update."""

    metadata_rules = "plain"
