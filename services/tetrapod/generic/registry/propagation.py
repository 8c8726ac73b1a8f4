"""Converts the propagation policy of a deletion to finalizers for the garbage collector.

Upstream: staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go, shouldOrphanDependents,
shouldDeleteDependents, deletionFinalizersForGarbageCollection
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.metadata import FOREGROUND_FINALIZER, ORPHAN_FINALIZER

_POLICY_FINALIZERS: Final = {"Orphan": ORPHAN_FINALIZER, "Foreground": FOREGROUND_FINALIZER}


def deletion_finalizers(strategy: Strategy, finalizers: Sequence[str], options: Object) -> list[str] | None:
    """Return the finalizers that an object must have to be deleted with the requested propagation policy.

    Args:
        strategy: the rules of the kind, which have the default policy.
        finalizers: the present finalizers of the object.
        options: the DeleteOptions object.

    Returns:
        None if the present finalizers are already the right ones, so that the object need not be changed.
    """
    remaining = [f for f in finalizers if f not in (ORPHAN_FINALIZER, FOREGROUND_FINALIZER)]
    if wanted := _policy_finalizer(strategy, finalizers, options):
        remaining.append(wanted)
    return None if set(remaining) == set(finalizers) else remaining


def _policy_finalizer(strategy: Strategy, finalizers: Sequence[str], options: Object) -> str | None:
    """Return the finalizer of the policy (`orphan` or `foregroundDeletion`), or None if it needs none.

    The policy comes from the request, else from the object's finalizers, else it is the kind's default.
    """
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
