"""The resource definition of services."""

from __future__ import annotations

from dataclasses import replace

from tetrapod.core.allocators.cluster_ips import ClusterIPs
from tetrapod.core.allocators.node_ports import NodePorts
from tetrapod.core.v1.services.changes import needs_address
from tetrapod.core.v1.services.read_defaults import may_be_incomplete, with_read_defaults
from tetrapod.core.v1.services.strategy import ServiceStatusStrategy, ServiceStrategy
from tetrapod.core.v1.services.table import TABLE
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.filtered_store import FilteredUpdateStore
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.storage.entry import Entry
from tetrapod.machinery.gvk import Object


def definition(addresses: ClusterIPs, ports: NodePorts, proxy: Rest | Strategy) -> ResourceDefinition:
    """Return the resource definition of services: versions, strategy, subresources and columns.

    Args:
        addresses: allocates cluster IPs.
        ports: allocates node ports.
        proxy: the implementation of `services/proxy`.
    """
    strategy = ServiceStrategy(addresses, ports)
    resource = builtin(
        "",
        "services",
        strategy,
        storage_prefix="services/specs",
        table=TABLE,
        subresources={"proxy": proxy, "status": ServiceStatusStrategy(strategy)},
    )
    return replace(resource, store=ServiceStore)


class ServiceStore(FilteredUpdateStore):
    """A store that removes internalTrafficPolicy from Services of type ExternalName when they are read.

    The field stays in the storage, so a later change of type restores it. Readers also see defaults of fields that old
    releases did not store.

    Upstream: pkg/registry/core/service/storage/storage.go, defaultOnRead.
    """

    def may_contain_hidden(self, item: bytes) -> bool:
        return (b'"ExternalName"' in item and b'"internalTrafficPolicy"' in item) or may_be_incomplete(item)

    def hide(self, obj: Object) -> bool:
        strategy = self.strategy
        assert isinstance(strategy, ServiceStrategy)
        complete = with_read_defaults(obj, strategy.addresses.families[0])
        changed = complete is not obj
        obj.update(complete)
        spec = obj.get("spec")
        if isinstance(spec, dict) and not needs_address(spec):
            changed = spec.pop("internalTrafficPolicy", None) is not None or changed
        return changed

    async def written(self, ctx: Context, entry: Entry) -> Entry:
        """Return the stored entry for the response to a write, without internalTrafficPolicy for type ExternalName.

        The response to a write of `/status` has the field, because upstream's status store has no decorator.
        """
        return entry if ctx.subresource == "status" else self.without_hidden(entry)
