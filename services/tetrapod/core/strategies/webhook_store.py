"""The store of webhook configurations, which hides empty caBundles from readers but stores them.

Upstream increments the generation when reflect.DeepEqual finds a change of the webhooks. It distinguishes an empty caBundle in the store
from a missing one sent by a client that never saw the empty one (pkg/registry/admissionregistration/*/strategy.go).
"""

from __future__ import annotations

from tetrapod.generic.registry.shown import FilteredStore
from tetrapod.machinery.gvk import Object


class WebhookStore(FilteredStore):
    """A store that hides empty caBundles."""

    def hides(self, item: bytes) -> bool:
        return b'"caBundle":""' in item

    def hide(self, obj: Object) -> bool:
        empty = [hook["clientConfig"] for hook in obj.get("webhooks") or () if hook["clientConfig"].get("caBundle") == ""]
        for config in empty:
            del config["caBundle"]
        return bool(empty)
