"""Strategies of PersistentVolumeClaim and its status, including the two fields that name a data source.

Upstream: pkg/registry/core/persistentvolumeclaim/strategy.go.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.context import Context
from tetrapod.machinery.gvk import Object

_KNOWN_SOURCES: Final = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


class ClaimStrategy(KindStrategy):
    """The strategy of PersistentVolumeClaim, which sets a missing dataSource from dataSourceRef and the reverse."""

    def default_stored(self, obj: Object, version: str) -> None:
        super().default_stored(obj, version)
        _normalize(obj.get("spec") or {})  # the claim may predate dataSourceRef

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        _complete_data_sources(obj["spec"], {})

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
        _complete_data_sources(spec, old_spec)

    def read_back(self, obj: Object) -> None:
        """Set a missing phase to Pending, in place."""
        super().read_back(obj)
        status = obj.setdefault("status", {})
        if not status.get("phase"):
            status["phase"] = "Pending"


def _complete_data_sources(spec: Object, old_spec: Object) -> None:
    """Drop data sources that are not supported, then set a missing dataSource from dataSourceRef or the reverse.

    A source is kept if the stored spec has one. Otherwise a dataSourceRef with a namespace is dropped without the gate
    CrossNamespaceVolumeDataSource, and so is always a dataSource that is neither a claim nor a volume snapshot.

    Args:
        spec: the new spec, changed in place.
        old_spec: the stored spec; {} on create.
    """
    ref = spec.get("dataSourceRef")
    crosses = ref is not None and ref.get("namespace") and old_spec.get("dataSourceRef") is None
    if crosses and not feature_gates.enabled("CrossNamespaceVolumeDataSource"):
        del spec["dataSourceRef"]
    had_source = old_spec.get("dataSource") is not None or old_spec.get("dataSourceRef") is not None
    source = spec.get("dataSource")
    if not had_source and spec.get("dataSourceRef") is None and source is not None and not _is_known(source):
        del spec["dataSource"]  # upstream ignores unknown kinds instead of rejecting them
    _normalize(spec)


def _is_known(source: Object) -> bool:
    return (source.get("apiGroup") or "", source.get("kind") or "") in _KNOWN_SOURCES


def _normalize(spec: Object) -> None:
    """Set the missing one of dataSource and dataSourceRef from the other, in place.

    A dataSourceRef with a namespace is not copied, because dataSource has no namespace.
    """
    source, ref = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and ref is None:
        spec["dataSourceRef"] = _reference(source)
    elif ref is not None and source is None and not ref.get("namespace"):
        spec["dataSource"] = _reference(ref)


def _reference(source: Object) -> Object:
    return {"apiGroup": source.get("apiGroup"), "kind": source.get("kind") or "", "name": source.get("name") or ""}
