"""Service (upstream: pkg/registry/core/service/{strategy.go,storage/alloc.go}): addresses and ports are taken around the write.

What a type needs and what a change of type drops is settled before; what was taken is given back when the write fails, and
what is needed no more when it succeeds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from tetrapod.core.allocators.cluster_ips import AllocationError, ClusterIPs
from tetrapod.core.allocators.node_ports import NodePorts, PortError
from tetrapod.core.defaults.networking import default_service
from tetrapod.core.strategies.service_changes import (
    HEADLESS,
    addresses_of,
    drop_unused,
    needs_address,
    normalize_addresses,
    patch_allocated,
    ports_of,
)
from tetrapod.core.strategies.service_families import settle_families
from tetrapod.core.validation import services as validation
from tetrapod.core.validation.service_addresses import addresses_and_families
from tetrapod.core.validation.services import TYPES
from tetrapod.core.warnings import services as warnings
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery import field as errors
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import GroupKind, Object
from tetrapod.machinery.names import name_is_dns_label
from tetrapod.machinery.status import StatusError, internal_error, invalid

_KIND: Final = GroupKind("", "Service")


@dataclass(slots=True)
class Taken:
    """What one write took, and what it makes free when it succeeds."""

    addresses: list[str] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    free_addresses: list[str] = field(default_factory=list)
    free_ports: list[int] = field(default_factory=list)


class ServiceStrategy(Strategy):
    allow_create_on_update = True
    has_status = True
    initial_status: dict[str, Any] = {"loadBalancer": {}}
    return_deleted_object = True
    field_labels = ("spec.clusterIP", "spec.type")

    def __init__(self, addresses: ClusterIPs, ports: NodePorts) -> None:
        self.addresses, self.ports = addresses, ports

    def default(self, obj: Object, version: str) -> None:
        default_service(obj)

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        return name_is_dns_label(name, prefix)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validation.validate(obj)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return validation.validate_update(new, old)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return warnings.service_warnings(obj, None)

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> list[str]:
        return warnings.service_warnings(new, old)

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        spec = obj.get("spec") or {}
        return {"spec.clusterIP": spec.get("clusterIP") or "", "spec.type": spec.get("type") or ""}

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        patch_allocated(new, old)
        drop_unused(new, old)

    async def begin_create(self, ctx: Context, obj: Object) -> Taken:
        taken = Taken()
        obj.setdefault("spec", {})
        normalize_addresses(obj, None)
        self._settle_families(obj, None)
        try:
            await self._take_addresses(ctx, obj, None, taken)
            await self._take_ports(ctx, obj, None, taken)
        except BaseException:
            await self._give_back(taken)
            raise
        return taken

    async def end_create(self, ctx: Context, taken: Taken, succeeded: bool) -> None:
        if not succeeded:
            await self._give_back(taken)

    async def begin_update(self, ctx: Context, new: Object, old: Object) -> Taken:
        taken = Taken()
        patch_allocated(new, old)
        drop_unused(new, old)
        normalize_addresses(new, old)
        self._settle_families(new, old)
        try:
            await self._take_addresses(ctx, new, old, taken)
            await self._take_ports(ctx, new, old, taken)
        except BaseException:
            await self._give_back(taken)
            raise
        return taken

    async def end_update(self, ctx: Context, taken: Taken, succeeded: bool) -> None:
        if not succeeded:
            await self._give_back(taken)
        elif not ctx.dry_run:
            await self._free(taken.free_addresses, taken.free_ports)

    async def after_delete(self, ctx: Context, obj: Object) -> None:
        await self._free(addresses_of(obj), ports_of(obj))

    async def _give_back(self, taken: Taken) -> None:
        await self._free(taken.addresses, taken.ports)

    async def _free(self, addresses: list[str], ports: list[int]) -> None:
        for address in addresses:
            await self.addresses.release(address)
        if ports:
            await self.ports.release(ports)

    def _settle_families(self, new: Object, old: Object | None) -> None:
        """
        Raises:
            StatusError: 422, before anything is taken for a service that cannot be.
        """
        spec = new["spec"]
        wrong = addresses_and_families(spec, (old or {}).get("spec") or {}) or settle_families(spec, self.addresses.family)
        if wrong:
            raise invalid(_KIND, _name(new), wrong)

    async def _take_addresses(self, ctx: Context, new: Object, old: Object | None, taken: Taken) -> None:
        spec = new["spec"]
        before = addresses_of(old) if old is not None else []
        if not needs_address(spec) or spec.get("clusterIP") == HEADLESS:
            taken.free_addresses = before
            return
        if spec.get("type") not in TYPES:
            return  # validation says so
        if before and spec.get("clusterIP"):
            return
        wanted = spec.get("clusterIP") or ""
        if wanted:
            try:
                await self.addresses.take(wanted, new, ctx.dry_run)
            except AllocationError as error:
                text = f"failed to allocate IP {wanted}: {error}"
                raise invalid(_KIND, _name(new), [errors.invalid("spec.clusterIPs", spec.get("clusterIPs") or [wanted], text)]) from None
        else:
            try:
                wanted = await self.addresses.take_any(new, ctx.dry_run)
            except AllocationError as error:
                raise internal_error(f"failed to allocate a serviceIP: {error}") from None
            spec["clusterIP"] = wanted
            spec["clusterIPs"] = [wanted]
        if not ctx.dry_run:
            taken.addresses.append(wanted)

    async def _take_ports(self, ctx: Context, new: Object, old: Object | None, taken: Taken) -> None:
        spec = new["spec"]
        before = set(ports_of(old)) if old is not None else set()
        wants = spec.get("type") == "NodePort" or (
            spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False
        )
        held = set(before)
        by_number: dict[int, tuple[int, set[str]]] = {}
        asked_for: set[tuple[int, str]] = set()
        for i, port in enumerate(spec.get("ports") or ()):
            asked, protocol = port.get("nodePort") or 0, port.get("protocol", "TCP")
            same = by_number.get(port.get("port", 0))
            if asked and (asked, protocol) in asked_for:
                text = "provided port is already allocated"
                raise invalid(_KIND, _name(new), [errors.invalid(f"spec.ports[{i}].nodePort", asked, text)])
            asked_for.add((asked, protocol))
            if asked and asked not in held:
                try:
                    await self._take_port(ctx, asked, taken)
                except PortError as error:
                    raise invalid(_KIND, _name(new), [errors.invalid(f"spec.ports[{i}].nodePort", asked, str(error))]) from None
                held.add(asked)
            elif not asked and wants:
                if same is not None and protocol not in same[1]:
                    asked = same[0]  # one node port for a port that is served over several protocols
                else:
                    asked = await self._any_port(ctx, taken, frozenset(held))
                    held.add(asked)
                port["nodePort"] = asked
            if asked:
                number, protocols = by_number.get(port.get("port", 0), (asked, set()))
                by_number[port.get("port", 0)] = (number, protocols | {protocol})
        if spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local":
            await self._health_port(ctx, new, before, taken, held)
        taken.free_ports = sorted(before - set(ports_of(new)))

    async def _health_port(self, ctx: Context, new: Object, before: set[int], taken: Taken, held: set[int]) -> None:
        asked = new["spec"].get("healthCheckNodePort") or 0
        if not asked:
            new["spec"]["healthCheckNodePort"] = await self._any_port(ctx, taken, frozenset(held))
        elif asked not in before and asked not in held:
            try:
                await self._take_port(ctx, asked, taken)
            except PortError as error:  # upstream's words, though it calls this its own mistake (500)
                text = f"Internal error occurred: failed to allocate requested HealthCheck NodePort {asked}: {error}"
                raise StatusError(422, "Invalid", text) from None

    async def _take_port(self, ctx: Context, port: int, taken: Taken) -> None:
        """Raises PortError for one that is taken or out of range."""
        await self.ports.take(port, ctx.dry_run)
        if not ctx.dry_run:
            taken.ports.append(port)

    async def _any_port(self, ctx: Context, taken: Taken, avoid: frozenset[int]) -> int:
        try:
            port = await self.ports.take_any(ctx.dry_run, avoid)
        except PortError as error:
            raise internal_error(f"failed to allocate a nodePort: {error}") from None
        if not ctx.dry_run:
            taken.ports.append(port)
        return port


def _name(obj: Object) -> str:
    return str(obj["metadata"].get("name", ""))
