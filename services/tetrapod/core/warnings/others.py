"""Warnings about kinds of smaller groups. `workloads` describes the functions' arguments."""

from __future__ import annotations

from tetrapod.core.podspec.label_warnings import deprecated_label
from tetrapod.machinery.gvk import Object


def runtime_class(obj: Object, old: Object | None) -> list[str]:
    """Return warnings about deprecated labels in the node selector."""
    selector = (obj.get("scheduling") or {}).get("nodeSelector") or {}
    return [f"scheduling.nodeSelector: {text}" for text in map(deprecated_label, selector) if text]
