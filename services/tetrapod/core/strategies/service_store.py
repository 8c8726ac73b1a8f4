"""Reads of services: internalTrafficPolicy is stored with an ExternalName, but shown with what has addresses only.

A change of type so finds the policy again that the service had before. Upstream: defaultOnReadInternalTrafficPolicy of
pkg/registry/core/service/storage/storage.go.
"""

from __future__ import annotations

from tetrapod.core.strategies.service_changes import needs_address
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.shown import ShownStore
from tetrapod.generic.storage.interface import Entry
from tetrapod.machinery.gvk import Object


class ServiceStore(ShownStore):
    def hides(self, item: bytes) -> bool:
        return b'"ExternalName"' in item and b'"internalTrafficPolicy"' in item

    def hide(self, obj: Object) -> bool:
        return not needs_address(obj["spec"]) and obj["spec"].pop("internalTrafficPolicy", None) is not None

    async def written(self, ctx: Context, entry: Entry) -> Entry:
        """Upstream's store of the status has no decorator: there the policy shows."""
        return entry if ctx.subresource == "status" else self.shown(entry)
