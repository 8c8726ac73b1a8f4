"""Conditions of CustomResourceDefinitions. Upstream: apiextensions-apiserver/pkg/apihelpers/helpers.go."""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.timestamps import now_rfc3339

ESTABLISHED: Final = "Established"
NAMES_ACCEPTED: Final = "NamesAccepted"
NON_STRUCTURAL: Final = "NonStructuralSchema"
TERMINATING: Final = "Terminating"
API_APPROVED: Final = "KubernetesAPIApprovalPolicyConformant"
CLEANUP_FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"


def condition(type_: str, status: str, reason: str, message: str) -> Object:
    """Return a condition without lastTransitionTime.

    Args:
        type_: the type, such as "Established".
        status: "True", "False" or "Unknown".
        reason: the reason in CamelCase.
        message: the message for people.
    """
    return {"type": type_, "status": status, "reason": reason, "message": message}


def equivalent(a: Object | None, b: Object | None) -> bool:
    """Return whether two conditions are equal apart from their times; None equals only None."""
    if a is None or b is None:
        return a is b
    return all(a.get(key) == b.get(key) for key in ("type", "status", "reason", "message"))


def put(crd: Object, new: Object) -> None:
    """Replace the condition of the same type in the status of a definition, or append it, in place.

    lastTransitionTime of an existing condition is kept while its status stays the same. Otherwise it is that of `new`,
    or the current time. Unlike machinery.conditions.set_condition, no other field of the existing condition is kept.
    """
    conditions = crd.setdefault("status", {}).get("conditions") or []
    crd["status"]["conditions"] = conditions
    for i, existing in enumerate(conditions):
        if existing.get("type") == new["type"]:
            since = existing.get("lastTransitionTime")
            if existing.get("status") != new["status"] or not since:
                since = new.get("lastTransitionTime") or now_rfc3339()
            conditions[i] = {**new, "lastTransitionTime": since}
            return
    conditions.append({**new, "lastTransitionTime": new.get("lastTransitionTime") or now_rfc3339()})


def remove(crd: Object, type_: str) -> None:
    """Remove the condition of this type from the status of a definition, in place, if there is one.

    Args:
        crd: the whole definition.
        type_: the type of the condition.
    """
    status = crd.get("status") or {}
    if status.get("conditions"):
        status["conditions"] = [c for c in status["conditions"] if c.get("type") != type_]
