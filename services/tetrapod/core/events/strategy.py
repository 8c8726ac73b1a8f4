"""The strategy of Event: objects with a TTL that PUT may create and that the garbage collector ignores.

Upstream: pkg/registry/core/event/strategy.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tetrapod.core.events import validation as events
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.store import Store
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.storage.interface import ResourceStorage
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import GroupKind, Object

_REF: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_LABELS: Final = (*(f"involvedObject.{key}" for key in _REF), "reason", "reportingComponent", "source", "type")
_METADATA: Final = ("metadata.name", "metadata.namespace")
_NEW_LABELS: Final = {
    **{f"regarding.{key}": f"involvedObject.{key}" for key in _REF},
    "reason": "reason",
    "reportingController": "reportingComponent",
    "type": "type",
}


class EventStore(Store):
    """The store of events.k8s.io, whose errors name the kind Event of the core group, as upstream."""

    def __init__(self, definition: ResourceDefinition, storage: ResourceStorage) -> None:
        super().__init__(definition, storage)
        self.kind = GroupKind("", "Event")


class EventStrategy(Strategy):
    """The strategy of events in the core group and in events.k8s.io.

    Args:
        ttl: seconds until an event is deleted.
        new_group: whether this is the resource of events.k8s.io, which has its own validation and field labels.
    """

    allow_create_on_update = True
    garbage_collection_default = "Unsupported"
    metadata_rules = "late"
    field_labels = _LABELS

    def __init__(self, ttl: int, *, new_group: bool = False) -> None:
        self._ttl = ttl
        self._new_group = new_group  # events.k8s.io

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return events.validate(obj, new_group=self._new_group)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return events.validate_update(new, old, new_group=self._new_group)

    def selectable_fields(self, obj: Object) -> Mapping[str, str]:
        ref = obj.get("involvedObject") or {}
        fields = {f"involvedObject.{key}": str(ref.get(key) or "") for key in _REF}
        source = (obj.get("source") or {}).get("component") or obj.get("reportingComponent") or ""
        fields |= {"reason": obj.get("reason") or "", "type": obj.get("type") or "", "source": source}
        fields["reportingComponent"] = obj.get("reportingComponent") or ""
        return fields

    def field_label(self, version: str, label: str, value: str) -> tuple[str, str]:
        if not self._new_group or label in _METADATA:
            return super().field_label(version, label, value)
        if label not in _NEW_LABELS:
            raise ValueError(f"field label not supported: {label}")
        return _NEW_LABELS[label], value

    def ttl(self, obj: Object) -> int:
        return self._ttl
