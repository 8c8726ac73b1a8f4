"""The store of services, which hides internalTrafficPolicy of ExternalName services from readers.

The policy stays in the store, so a later change of type restores it.
Upstream: pkg/registry/core/service/storage/storage.go, defaultOnReadInternalTrafficPolicy.
"""

from __future__ import annotations

from tetrapod.core.v1.services.changes import needs_address
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.filtered_store import FilteredUpdateStore
from tetrapod.generic.storage.interface import Entry
from tetrapod.machinery.gvk import Object


class ServiceStore(FilteredUpdateStore):
    """A store that hides internalTrafficPolicy of services of type ExternalName from readers."""

    def may_contain_hidden(self, item: bytes) -> bool:
        return b'"ExternalName"' in item and b'"internalTrafficPolicy"' in item

    def hide(self, obj: Object) -> bool:
        return not needs_address(obj["spec"]) and obj["spec"].pop("internalTrafficPolicy", None) is not None

    async def written(self, ctx: Context, entry: Entry) -> Entry:
        """Return the stored entry for the response to a write, without the policy.

        The response to a write of `/status` shows the policy, because upstream's status store has no decorator.
        """
        return entry if ctx.subresource == "status" else self.shown(entry)
