"""The strategy of ServiceAccount. Upstream: pkg/registry/core/serviceaccount/strategy.go."""

from __future__ import annotations

from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.generic.registry.context import Context
from tetrapod.machinery.gvk import Object


class ServiceAccountStrategy(KindStrategy):
    """A strategy that keeps only the names of the referenced secrets."""

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        super().prepare_for_create(ctx, obj)
        _only_names(obj)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        super().prepare_for_update(ctx, new, old)
        _only_names(new)


def _only_names(account: Object) -> None:
    if secrets := account.get("secrets"):
        account["secrets"] = [{"name": secret["name"]} if secret.get("name") else {} for secret in secrets]
