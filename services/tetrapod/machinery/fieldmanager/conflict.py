"""The refusal of an apply that would take fields from other managers.

Follows k8s.io/apimachinery/pkg/util/managedfields/internal/conflict.go.
"""

from __future__ import annotations

from tetrapod.machinery.field import go_quote
from tetrapod.machinery.fieldmanager.entries import UPDATE, identity_of
from tetrapod.machinery.fieldmanager.pathelement import show_path
from tetrapod.machinery.fieldmanager.updater import Conflict
from tetrapod.machinery.status import StatusError, apply_conflict


def refusal(conflicts: list[Conflict]) -> StatusError:
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {_manager(c.manager_id)}", "field": show_path(c.path)}
        for c in conflicts
    ]
    return apply_conflict(causes, _message(conflicts))


def _message(conflicts: list[Conflict]) -> str:
    if len(conflicts) == 1:
        [only] = conflicts
        return f"Apply failed with 1 conflict: conflict with {_manager(only.manager_id)}: {show_path(only.path)}"
    lines: list[str] = []
    for manager_id in sorted({c.manager_id for c in conflicts}):
        lines.append(f"conflicts with {_manager(manager_id)}:")
        lines += [f"- {show_path(c.path)}" for c in conflicts if c.manager_id == manager_id]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def _manager(manager_id: str) -> str:
    identity = identity_of(manager_id)
    text = go_quote(identity.get("manager", ""))
    if subresource := identity.get("subresource"):
        text = f"{text} with subresource {go_quote(subresource)}"
    if identity.get("operation") == UPDATE:
        text = f"{text} using {identity.get('apiVersion', '')}"
    return text
