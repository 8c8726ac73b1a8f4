"""PersistentVolumeClaim: its two ways to name a data source (upstream: pkg/registry/core/persistentvolumeclaim/strategy.go)."""

from __future__ import annotations

from typing import Final

from tetrapod.core.strategies.simple import KindStrategy
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.machinery.gvk import Object

_KNOWN_SOURCES: Final = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


class ClaimStrategy(KindStrategy):
    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        _settle_sources(obj["spec"], {})

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        _settle_sources(spec, before)
        _normalize(before)  # one that was stored before there was a second way


class ClaimStatusStrategy(StatusStrategy):
    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        super().prepare_for_update(ctx, new, old)
        if (old.get("status") or {}).get("healthStatus") is None:  # behind the gate CSIVolumeHealth
            (new.get("status") or {}).pop("healthStatus", None)


def _settle_sources(spec: Object, before: Object) -> None:
    """Drop what cannot be a source, and say in both fields what one of them says."""
    ref = spec.get("dataSourceRef")
    if ref is not None and ref.get("namespace") and before.get("dataSourceRef") is None:
        del spec["dataSourceRef"]  # behind the gate CrossNamespaceVolumeDataSource
    used = before.get("dataSource") is not None or before.get("dataSourceRef") is not None
    source = spec.get("dataSource")
    if not used and spec.get("dataSourceRef") is None and source is not None and not _is_known(source):
        del spec["dataSource"]  # as it always was: not refused, ignored
    _normalize(spec)


def _is_known(source: Object) -> bool:
    return (source.get("apiGroup") or "", source.get("kind") or "") in _KNOWN_SOURCES


def _normalize(spec: Object) -> None:
    source, ref = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and ref is None:
        spec["dataSourceRef"] = _reference(source)
    elif ref is not None and source is None and not ref.get("namespace"):
        spec["dataSource"] = _reference(ref)


def _reference(source: Object) -> Object:
    return {"apiGroup": source.get("apiGroup"), "kind": source.get("kind") or "", "name": source.get("name") or ""}
