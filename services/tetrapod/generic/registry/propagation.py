"""What becomes of dependents: a deletion's propagation policy as finalizers for the garbage collector.

Follows shouldOrphanDependents, shouldDeleteDependents and deletionFinalizersForGarbageCollection of
k8s.io/apiserver/pkg/registry/generic/registry/store.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.metadata import FOREGROUND_FINALIZER, ORPHAN_FINALIZER

_POLICY_FINALIZERS: Final = {"Orphan": ORPHAN_FINALIZER, "Foreground": FOREGROUND_FINALIZER}


def deletion_finalizers(strategy: Strategy, finalizers: Sequence[str], options: Object) -> list[str] | None:
    """The finalizers that an object shall have while it is deleted; None where they are right already."""
    kept = [f for f in finalizers if f not in (ORPHAN_FINALIZER, FOREGROUND_FINALIZER)]
    if wanted := _policy_finalizer(strategy, finalizers, options):
        kept.append(wanted)
    return None if set(kept) == set(finalizers) else kept


def _policy_finalizer(strategy: Strategy, finalizers: Sequence[str], options: Object) -> str | None:
    """What the request says goes before what the object has, and that before the kind's default."""
    if strategy.garbage_collection_default == "Unsupported":
        return None
    orphan: bool | None = options.get("orphanDependents")
    if orphan is not None:
        return ORPHAN_FINALIZER if orphan else None
    policy: str | None = options.get("propagationPolicy")
    if policy is not None:
        return _POLICY_FINALIZERS.get(policy)
    for finalizer in finalizers:
        if finalizer in (ORPHAN_FINALIZER, FOREGROUND_FINALIZER):
            return finalizer
    return _POLICY_FINALIZERS.get(strategy.garbage_collection_default)
