"""The definition of ServiceAccounts, with their strategy, warnings and table columns.

Upstream: pkg/registry/core/serviceaccount/strategy.go, pkg/api/serviceaccount.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.cells import AGE, NAME, age, name_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import TableConvertor

ENFORCE: Final = "kubernetes.io/enforce-mountable-secrets"


TABLE: Final = TableConvertor((NAME, AGE), lambda obj: [name_of(obj), age(obj)])


def definition(token: Rest | Strategy) -> ResourceDefinition:
    """Return the resource definition of serviceaccounts: versions, strategy, subresources and columns.

    Args:
        token: the implementation of `serviceaccounts/token`.
    """
    strategy = ServiceAccountStrategy(
        return_deleted_object=True, warnings=warnings, revalidates_generate_name="after finalizers"
    )
    return builtin("", "serviceaccounts", strategy, table=TABLE, subresources={"token": token})


class ServiceAccountStrategy(KindStrategy):
    """A strategy that reduces each reference in `secrets` to its name."""

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        super().prepare_for_create(ctx, obj)
        _only_names(obj)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        super().prepare_for_update(ctx, new, old)
        _only_names(new)


def _only_names(account: Object) -> None:
    if secrets := account.get("secrets"):
        account["secrets"] = [{"name": secret["name"]} if secret.get("name") else {} for secret in secrets]


def warnings(account: Object, old: Object | None) -> list[str]:
    """Return a warning if a write adds the deprecated annotation kubernetes.io/enforce-mountable-secrets.

    Args:
        old: the stored object; None on create.
    """
    if ENFORCE not in (account["metadata"].get("annotations") or {}) or (
        old and ENFORCE in (old["metadata"].get("annotations") or {})
    ):
        return []
    return [
        f"metadata.annotations[{ENFORCE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to "
        "mounted secrets"
    ]
