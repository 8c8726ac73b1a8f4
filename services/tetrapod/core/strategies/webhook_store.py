"""Webhook configurations keep a caBundle that was sent empty, which nobody reads again.

A generation is a change of the webhooks by reflect.DeepEqual (upstream: pkg/registry/admissionregistration/*/strategy.go), that
tells empty bytes in the store from those that a reader, who did not see them, leaves out.
"""

from __future__ import annotations

from typing import Any

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.hooks import Transform
from tetrapod.generic.registry.shown import ShownStore
from tetrapod.generic.storage.interface import Entry
from tetrapod.machinery.gvk import Object


class WebhookStore(ShownStore):
    def hides(self, item: bytes) -> bool:
        return b'"caBundle":""' in item

    def hide(self, obj: Object) -> bool:
        empty = [hook["clientConfig"] for hook in obj.get("webhooks") or () if hook["clientConfig"].get("caBundle") == ""]
        for config in empty:
            del config["caBundle"]
        return bool(empty)

    async def update(self, ctx: Context, name: str, transform: Transform, **options: Any) -> tuple[Entry, bool]:
        """What is patched is what a reader sees."""

        async def of_shown(current: Object | None) -> Object:
            if current is not None:
                self.hide(current)
            return await transform(current)

        return await super().update(ctx, name, of_shown, **options)
