"""The error of a server-side apply that conflicts with other managers.

Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal/conflict.go.
"""

from __future__ import annotations

from tetrapod.machinery.error_limits import MAX_ERRORS, cut_path, more
from tetrapod.machinery.fieldmanager.entries import UPDATE, identity_of
from tetrapod.machinery.fieldmanager.pathelement import show_path
from tetrapod.machinery.fieldmanager.updater import Conflict
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.status import StatusError, apply_conflict


def conflict_error(conflicts: list[Conflict]) -> StatusError:
    """Return the 409 for an apply that conflicts with other field managers.

    It lists the first MAX_ERRORS conflicts and the number of the others.
    """
    listed = conflicts[:MAX_ERRORS]
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_manager(c.manager_id)}",
            "field": cut_path(show_path(c.path)),
        }
        for c in listed
    ]
    if left_out := len(conflicts) - len(listed):
        causes.append({"message": more(left_out, "conflict")})
    return apply_conflict(causes, _message(listed, left_out))


def _message(listed: list[Conflict], left_out: int) -> str:
    if len(listed) == 1:
        [only] = listed
        return (
            f"Apply failed with 1 conflict: conflict with {_manager(only.manager_id)}: {cut_path(show_path(only.path))}"
        )
    lines: list[str] = []
    for manager_id in sorted({c.manager_id for c in listed}):
        lines.append(f"conflicts with {_manager(manager_id)}:")
        lines += [f"- {cut_path(show_path(c.path))}" for c in listed if c.manager_id == manager_id]
    if left_out:
        lines.append(more(left_out, "conflict"))
    return f"Apply failed with {len(listed) + left_out} conflicts: " + "\n".join(lines)


def _manager(manager_id: str) -> str:
    identity = identity_of(manager_id)
    text = go_quote(identity.get("manager", ""))
    if subresource := identity.get("subresource"):
        text = f"{text} with subresource {go_quote(subresource)}"
    if identity.get("operation") == UPDATE:
        text = f"{text} using {identity.get('apiVersion', '')}"
    return text
