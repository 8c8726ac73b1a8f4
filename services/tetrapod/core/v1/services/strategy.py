"""Strategies of Service and its status.

Cluster IPs and node ports are allocated before the write and committed or reverted after it.

Upstream: pkg/registry/core/service/{strategy.go,storage/storage.go}.
"""

from __future__ import annotations

from typing import Any

from tetrapod.core.allocators.cluster_ips import ClusterIPs
from tetrapod.core.allocators.node_ports import NodePorts
from tetrapod.core.v1.services import validation, warnings
from tetrapod.core.v1.services.allocation import KIND, Allocation, release
from tetrapod.core.v1.services.changes import addresses_of, drop_unused, normalize_addresses, patch_allocated, ports_of
from tetrapod.core.v1.services.defaults import set_defaults
from tetrapod.core.v1.services.ip_families import set_ip_families
from tetrapod.core.v1.services.read_defaults import with_read_defaults
from tetrapod.core.validation.names import RELAXED_SERVICE_NAMES
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import name_is_dns1035_label, name_is_dns_label
from tetrapod.machinery.status import invalid


class ServiceStrategy(Strategy):
    """The strategy of Service, which allocates cluster IPs and node ports around each write.

    Args:
        addresses: allocates cluster IPs.
        ports: allocates node ports.
    """

    allow_create_on_update = True
    has_status = True
    initial_status: dict[str, Any] = {"loadBalancer": {}}
    return_deleted_object = True
    field_labels = ("spec.clusterIP", "spec.type")

    def __init__(self, addresses: ClusterIPs, ports: NodePorts) -> None:
        self.addresses, self.ports = addresses, ports

    def default(self, obj: Object, version: str) -> None:
        set_defaults(obj)

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        relaxed = feature_gates.enabled(RELAXED_SERVICE_NAMES)
        return name_is_dns_label(name, prefix) if relaxed else name_is_dns1035_label(name, prefix)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validation.validate(obj)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return validation.validate_update(new, self._complete(old))

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return warnings.service_warnings(obj)

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> list[str]:
        return warnings.service_warnings(new)

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        spec = obj.get("spec") or {}
        return {"spec.clusterIP": spec.get("clusterIP") or "", "spec.type": spec.get("type") or ""}

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        drop_unused(new, self._complete(old))

    async def begin_create(self, ctx: Context, obj: Object) -> Allocation:
        allocation = Allocation(self.addresses, self.ports, ctx.dry_run)
        obj.setdefault("spec", {})
        normalize_addresses(obj, None)
        await offloaded(ctx.large, self._set_ip_families, obj, None)
        try:
            await allocation.create(obj)
        except BaseException:
            await allocation.revert()
            raise
        return allocation

    async def end_create(self, ctx: Context, allocation: Allocation, succeeded: bool) -> None:
        await (allocation.commit() if succeeded else allocation.revert())

    async def begin_update(self, ctx: Context, new: Object, old: Object) -> Allocation:
        allocation = Allocation(self.addresses, self.ports, ctx.dry_run)
        old = self._complete(old)
        patch_allocated(new, old)
        normalize_addresses(new, old)
        await offloaded(ctx.large, self._set_ip_families, new, old)
        try:
            await allocation.update(new, old)
        except BaseException:
            await allocation.revert()
            raise
        return allocation

    async def end_update(self, ctx: Context, allocation: Allocation, succeeded: bool) -> None:
        await (allocation.commit() if succeeded else allocation.revert())

    async def after_delete(self, ctx: Context, obj: Object) -> None:
        await release(self.addresses, self.ports, addresses_of(obj), ports_of(obj))

    def _complete(self, old: Object) -> Object:
        """Return the stored Service with defaults for clusterIPs, ipFamilies and ipFamilyPolicy if they are unset.

        Releases before Kubernetes 1.20 did not store these fields.
        """
        return with_read_defaults(old, self.addresses.families[0])

    def _set_ip_families(self, new: Object, old: Object | None) -> None:
        """Set unset ipFamilies and ipFamilyPolicy of `new`; called before anything is allocated.

        Args:
            old: the stored object; None on create.

        Raises:
            StatusError: 422, the addresses, families or policy are invalid or not supported by the cluster.
        """
        old_spec = None if old is None else old.get("spec") or {}
        if errors := set_ip_families(new["spec"], old_spec, self.addresses.families):
            raise invalid(KIND, str(new["metadata"].get("name", "")), errors)


class ServiceStatusStrategy(StatusStrategy):
    """The strategy of `services/status`, where ingress is only valid for type LoadBalancer.

    Args:
        main: the strategy of Services themselves.
    """

    allow_create_on_update = True
    """As upstream, although a create through `/status` allocates nothing, so that only a Service of type ExternalName
    would be valid.
    """

    def __init__(self, main: ServiceStrategy) -> None:
        super().__init__(main, validate=validation.validate_status)

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> list[str]:
        return warnings.status_warnings(new)
