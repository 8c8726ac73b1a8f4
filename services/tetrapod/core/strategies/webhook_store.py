"""Webhook configurations keep a caBundle that was sent empty, which nobody reads again.

A generation is a change of the webhooks by reflect.DeepEqual (upstream: pkg/registry/admissionregistration/*/strategy.go), that
tells empty bytes in the store from those that a reader, who did not see them, leaves out.
"""

from __future__ import annotations

from tetrapod.generic.registry.shown import HiddenStore
from tetrapod.machinery.gvk import Object


class WebhookStore(HiddenStore):
    def hides(self, item: bytes) -> bool:
        return b'"caBundle":""' in item

    def hide(self, obj: Object) -> bool:
        empty = [hook["clientConfig"] for hook in obj.get("webhooks") or () if hook["clientConfig"].get("caBundle") == ""]
        for config in empty:
            del config["caBundle"]
        return bool(empty)
