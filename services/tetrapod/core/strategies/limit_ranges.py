"""The strategy of LimitRange. Upstream: pkg/registry/core/limitrange/strategy.go."""

from __future__ import annotations

import uuid

from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.generic.registry.context import Context
from tetrapod.machinery.gvk import Object


class LimitRangeStrategy(KindStrategy):
    """A strategy that gives a LimitRange without a name a random UUID as name."""

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        if not obj["metadata"].get("name"):
            obj["metadata"]["name"] = str(uuid.uuid4())
