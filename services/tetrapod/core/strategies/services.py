"""Service (upstream: pkg/registry/core/service/{strategy.go,storage/alloc.go}): addresses and ports are taken around the write.

What a type needs and what a change of type drops is settled before; what was taken is given back when the write fails, and
what is needed no more when it succeeds.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import Any, Final

from tetrapod.core.allocators.cluster_ips import AllocationError, ClusterIPs
from tetrapod.core.allocators.node_ports import NodePorts, PortError
from tetrapod.core.defaults.networking import default_service
from tetrapod.core.validation import services as validation
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery import field as errors
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import GroupKind, Object
from tetrapod.machinery.names import name_is_dns1035_label
from tetrapod.machinery.status import invalid

HEADLESS: Final = "None"
_WITH_ADDRESS: Final = frozenset({"ClusterIP", "NodePort", "LoadBalancer"})
_WITH_PORTS: Final = frozenset({"NodePort", "LoadBalancer"})
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
        return name_is_dns1035_label(name, prefix)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validation.validate(obj)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return validation.validate_update(new, old)

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        spec = obj.get("spec") or {}
        return {"spec.clusterIP": spec.get("clusterIP") or "", "spec.type": spec.get("type") or ""}

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        drop_unused(obj, None)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        patch_allocated(new, old)
        drop_unused(new, old)

    async def begin_create(self, ctx: Context, obj: Object) -> Taken:
        taken = Taken()
        spec = obj.setdefault("spec", {})
        normalize_addresses(obj, None)
        self._default_families(spec)
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
        self._default_families(new["spec"])
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
        await self._free(_addresses_of(obj), _ports_of(obj))

    async def _give_back(self, taken: Taken) -> None:
        await self._free(taken.addresses, taken.ports)

    async def _free(self, addresses: list[str], ports: list[int]) -> None:
        for address in addresses:
            await self.addresses.release(address)
        if ports:
            await self.ports.release(ports)

    def _default_families(self, spec: Object) -> None:
        """One family, that of the cluster; headless services without selector ask for both, as upstream."""
        if spec.get("type") == "ExternalName":
            for key in ("ipFamilies", "ipFamilyPolicy", "clusterIP", "clusterIPs"):
                spec.pop(key, None)
            return
        if spec.get("type") not in _WITH_ADDRESS:
            return
        if spec.get("clusterIP") == HEADLESS and not spec.get("selector"):
            if spec.get("ipFamilyPolicy") is None:
                spec["ipFamilyPolicy"] = "RequireDualStack"
            if not spec.get("ipFamilies"):
                spec["ipFamilies"] = [self.addresses.family]
            if spec["ipFamilyPolicy"] != "SingleStack" and len(spec["ipFamilies"]) == 1:
                other = "IPv6" if spec["ipFamilies"][0] == "IPv4" else "IPv4"
                spec["ipFamilies"] = [spec["ipFamilies"][0], other]
            return
        if spec.get("ipFamilyPolicy") is None:
            spec["ipFamilyPolicy"] = "SingleStack"
        if not spec.get("ipFamilies"):
            spec["ipFamilies"] = [self.addresses.family]

    async def _take_addresses(self, ctx: Context, new: Object, old: Object | None, taken: Taken) -> None:
        spec = new["spec"]
        before = _addresses_of(old) if old is not None else []
        if spec.get("type") not in _WITH_ADDRESS or spec.get("clusterIP") == HEADLESS:
            taken.free_addresses = before
            if spec.get("clusterIP") == HEADLESS:
                spec["clusterIPs"] = [HEADLESS]
            return
        if before and spec.get("clusterIP"):
            return
        wanted = spec.get("clusterIP") or ""
        if wanted:
            if _family(wanted) is None:
                return  # validation says what is wrong with it
            if _family(wanted) != self.addresses.family:
                text = f"{_family(wanted)} is not configured on this cluster"
                raise invalid(_KIND, _name(new), [errors.invalid("spec.clusterIPs[0]", spec.get("clusterIPs") or [wanted], text)])
            try:
                await self.addresses.take(wanted, new, ctx.dry_run)
            except AllocationError as error:
                text = f"failed to allocate IP {wanted}: {error}"
                raise invalid(_KIND, _name(new), [errors.invalid("spec.clusterIPs", spec.get("clusterIPs") or [wanted], text)]) from None
        else:
            try:
                wanted = await self.addresses.take_any(new, ctx.dry_run)
            except AllocationError as error:
                raise errors_internal(f"failed to allocate a serviceIP: {error}") from None
            spec["clusterIP"] = wanted
            spec["clusterIPs"] = [wanted]
        if not ctx.dry_run:
            taken.addresses.append(wanted)

    async def _take_ports(self, ctx: Context, new: Object, old: Object | None, taken: Taken) -> None:
        spec = new["spec"]
        before = set(_ports_of(old)) if old is not None else set()
        wants = spec.get("type") == "NodePort" or (
            spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False
        )
        held = set(before)
        by_number: dict[int, tuple[int, set[str]]] = {}
        for i, port in enumerate(spec.get("ports") or ()):
            asked, protocol = port.get("nodePort") or 0, port.get("protocol", "TCP")
            same = by_number.get(port.get("port", 0))
            if asked and asked not in held:
                await self._take_port(ctx, new, asked, f"spec.ports[{i}].nodePort", taken)
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
        taken.free_ports = sorted(before - set(_ports_of(new)))

    async def _health_port(self, ctx: Context, new: Object, before: set[int], taken: Taken, held: set[int]) -> None:
        asked = new["spec"].get("healthCheckNodePort") or 0
        if not asked:
            new["spec"]["healthCheckNodePort"] = await self._any_port(ctx, taken, frozenset(held))
        elif asked not in before and asked not in held:
            await self._take_port(ctx, new, asked, "spec.healthCheckNodePort", taken)

    async def _take_port(self, ctx: Context, new: Object, port: int, path: str, taken: Taken) -> None:
        try:
            await self.ports.take(port, ctx.dry_run)
        except PortError as error:
            raise invalid(_KIND, _name(new), [errors.invalid(path, port, str(error))]) from None
        if not ctx.dry_run:
            taken.ports.append(port)

    async def _any_port(self, ctx: Context, taken: Taken, avoid: frozenset[int]) -> int:
        try:
            port = await self.ports.take_any(ctx.dry_run, avoid)
        except PortError as error:
            raise errors_internal(f"failed to allocate a nodePort: {error}") from None
        if not ctx.dry_run:
            taken.ports.append(port)
        return port


def errors_internal(text: str) -> Exception:
    from tetrapod.machinery.status import internal_error

    return internal_error(text)


def _name(obj: Object) -> str:
    return str(obj["metadata"].get("name", ""))


def _family(address: str) -> str | None:
    try:
        return "IPv4" if ipaddress.ip_address(address).version == 4 else "IPv6"
    except ValueError:
        return None


def _addresses_of(obj: Object) -> list[str]:
    spec = obj.get("spec") or {}
    if spec.get("type") not in _WITH_ADDRESS:
        return []
    return [ip for ip in spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else []) if ip and ip != HEADLESS]


def _ports_of(obj: Object) -> list[int]:
    spec = obj.get("spec") or {}
    ports = [p["nodePort"] for p in spec.get("ports") or () if p.get("nodePort")]
    return [*ports, spec["healthCheckNodePort"]] if spec.get("healthCheckNodePort") else ports


def patch_allocated(new: Object, old: Object) -> None:
    """An update that leaves out what was allocated keeps it (upstream: patchAllocatedValues)."""
    spec, before = new.setdefault("spec", {}), old.get("spec") or {}
    if spec.get("type") in _WITH_ADDRESS and before.get("type") in _WITH_ADDRESS:
        if not spec.get("clusterIP"):
            spec["clusterIP"] = before.get("clusterIP", "")
        if not spec.get("clusterIPs") and spec["clusterIP"] == before.get("clusterIP"):
            spec["clusterIPs"] = list(before.get("clusterIPs") or ())
        for key in ("ipFamilies", "ipFamilyPolicy"):
            if not spec.get(key) and before.get(key):
                spec[key] = before[key]
        if not spec["clusterIP"]:
            del spec["clusterIP"]
    if spec.get("type") in _WITH_PORTS and before.get("type") in _WITH_PORTS:
        known = {(p.get("protocol"), p.get("port")): p["nodePort"] for p in before.get("ports") or () if p.get("nodePort")}
        used = {p["nodePort"] for p in spec.get("ports") or () if p.get("nodePort")}
        for port in spec.get("ports") or ():
            kept = known.get((port.get("protocol"), port.get("port")))
            if not port.get("nodePort") and kept and kept not in used:
                port["nodePort"] = kept
                used.add(kept)
        kept_health = before.get("healthCheckNodePort")
        if kept_health and _needs_health_port(spec) and _needs_health_port(before) and not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = kept_health


def _needs_health_port(spec: Object) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def drop_unused(new: Object, old: Object | None) -> None:
    """A change of type drops the fields of the old type, unless the user changed them (upstream: dropTypeDependentFields)."""
    if old is None:
        return
    spec, before = new["spec"], old.get("spec") or {}
    if before.get("type") in _WITH_ADDRESS and spec.get("type") not in _WITH_ADDRESS:
        if _same(spec, before, "clusterIP", "clusterIPs"):
            for key in ("clusterIP", "clusterIPs"):
                spec.pop(key, None)
        for key in ("ipFamilies", "ipFamilyPolicy"):
            if _same(spec, before, key):
                spec.pop(key, None)
    if before.get("type") in _WITH_PORTS and spec.get("type") not in _WITH_PORTS:
        kept = {(p.get("name"), p.get("protocol"), p.get("port")): p.get("nodePort") for p in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            if port.get("nodePort") and kept.get((port.get("name"), port.get("protocol"), port.get("port"))) == port["nodePort"]:
                del port["nodePort"]
    if _needs_health_port(before) and not _needs_health_port(spec) and _same(spec, before, "healthCheckNodePort"):
        spec.pop("healthCheckNodePort", None)
    if before.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        for key in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if _same(spec, before, key):
                spec.pop(key, None)
        new["status"] = {"loadBalancer": {}}
    external = spec.get("type") in _WITH_PORTS or bool(spec.get("externalIPs"))
    if not external and _same(spec, before, "externalTrafficPolicy"):
        spec.pop("externalTrafficPolicy", None)
    if before.get("type") == "ExternalName" and spec.get("type") != "ExternalName" and _same(spec, before, "externalName"):
        spec.pop("externalName", None)


def _same(spec: Object, before: Object, *keys: str) -> bool:
    return all(spec.get(key) == before.get(key) for key in keys)


def normalize_addresses(new: Object, old: Object | None) -> None:
    """clusterIP and clusterIPs agree where one of them was given or changed (upstream: normalizeClusterIPs)."""
    spec = new["spec"]
    if old is None:
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        return
    before = old.get("spec") or {}
    ip, ips = spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    if ip != (before.get("clusterIP") or "") and ips == (before.get("clusterIPs") or []):
        if ip:
            spec["clusterIPs"] = [ip]
        else:
            spec.pop("clusterIPs", None)
