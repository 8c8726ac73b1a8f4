"""Table columns of bindings; roles have the default ones.

Upstream: pkg/printers/internalversion/printers.go, printRoleBinding.
"""

from __future__ import annotations

from typing import Any

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor
from tetrapod.machinery.timed_cells import since


def _row(binding: Object) -> list[Any]:
    meta, ref = binding["metadata"], binding.get("roleRef") or {}
    names: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in binding.get("subjects") or ():
        kind, name = subject.get("kind", ""), subject.get("name", "")
        if kind in names:
            names[kind].append(f"{subject.get('namespace') or ''}/{name}" if kind == "ServiceAccount" else name)
    wide = [", ".join(names[kind]) for kind in ("User", "Group", "ServiceAccount")]
    return [
        meta.get("name", ""),
        f"{ref.get('kind', '')}/{ref.get('name', '')}",
        since(meta.get("creationTimestamp")),
        *wide,
    ]


BINDING_TABLE = TableConvertor(
    (
        Column("Name", format="name"),
        Column("Role"),
        Column("Age"),
        Column("Users", priority=1),
        Column("Groups", priority=1),
        Column("ServiceAccounts", priority=1),
    ),
    _row,
)
