"""What an update of a Service keeps and drops (upstream: core/service/{strategy.go,storage/storage.go})."""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.gvk import Object

HEADLESS: Final = "None"
WITH_PORTS: Final = frozenset({"NodePort", "LoadBalancer"})


def needs_address(spec: Object) -> bool:
    """A type that nobody knows needs one too: it is refused later, by its name."""
    return spec.get("type") != "ExternalName"


def addresses_of(obj: Object) -> list[str]:
    spec = obj.get("spec") or {}
    if not needs_address(spec):
        return []
    return [ip for ip in spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else []) if ip and ip != HEADLESS]


def node_ports_of(spec: Object) -> list[int]:
    return [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]


def ports_of(obj: Object) -> list[int]:
    spec = obj.get("spec") or {}
    ports = node_ports_of(spec)
    return [*ports, spec["healthCheckNodePort"]] if spec.get("healthCheckNodePort") else ports


def needs_health_port(spec: Object) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _keeps_ports(spec: Object) -> bool:
    """Whether node ports are made for this one, so that those which were made are put back."""
    return spec.get("type") == "NodePort" or (spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False)


def patch_allocated(new: Object, old: Object) -> None:
    """An update that leaves out what was allocated keeps it, node ports by the names of ports (upstream: patchAllocatedValues)."""
    spec, before = new.setdefault("spec", {}), old.get("spec") or {}
    if needs_address(spec) and needs_address(before):
        for key in ("clusterIP", "clusterIPs"):
            if not spec.get(key) and before.get(key):
                spec[key] = before[key] if key == "clusterIP" else list(before[key])
    if _keeps_ports(spec) and _keeps_ports(before):
        used = set(node_ports_of(before)) & set(node_ports_of(spec))
        known = {port.get("name"): port.get("nodePort") for port in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            kept = known.get(port.get("name"))
            if not port.get("nodePort") and kept and kept not in used:
                port["nodePort"] = kept
    kept_health = before.get("healthCheckNodePort")
    if kept_health and needs_health_port(spec) and needs_health_port(before) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = kept_health


def normalize_addresses(new: Object, old: Object | None) -> None:
    """clusterIP and clusterIPs agree where one of them was given or changed (upstream: normalizeClusterIPs)."""
    spec = new["spec"]
    if old is None:
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        return
    before = old.get("spec") or {}
    ip, had = spec.get("clusterIP") or "", before.get("clusterIP") or ""
    if ip == had:
        if before.get("clusterIPs") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = list(before["clusterIPs"])
    elif (spec.get("clusterIPs") or []) == (before.get("clusterIPs") or []):
        if had and not ip:
            spec.pop("clusterIPs", None)
        else:
            spec["clusterIPs"] = [ip]


def drop_unused(new: Object, old: Object) -> None:
    """A change of type drops the fields of the old type, unless the user changed them (upstream: dropTypeDependentFields)."""
    spec, before = new["spec"], old.get("spec") or {}
    if needs_address(before) and not needs_address(spec):
        if _same(spec, before, "clusterIP", "clusterIPs"):
            for key in ("clusterIP", "clusterIPs"):
                spec.pop(key, None)
        for key in ("ipFamilies", "ipFamilyPolicy"):
            if _same(spec, before, key):
                spec.pop(key, None)
    if before.get("type") in WITH_PORTS and spec.get("type") not in WITH_PORTS and set(node_ports_of(spec)) <= set(node_ports_of(before)):
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)
    if needs_health_port(before) and not needs_health_port(spec) and _same(spec, before, "healthCheckNodePort"):
        spec.pop("healthCheckNodePort", None)
    if before.get("type") == "LoadBalancer" != spec.get("type"):
        for key in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if _same(spec, before, key):
                spec.pop(key, None)
    if _is_accessible(before) and not _is_accessible(spec) and _same(spec, before, "externalTrafficPolicy"):
        spec.pop("externalTrafficPolicy", None)
    if spec.get("type") != "LoadBalancer":
        new["status"] = {**(new.get("status") or {}), "loadBalancer": {}}


def _is_accessible(spec: Object) -> bool:
    """Upstream: ExternallyAccessible."""
    return spec.get("type") in WITH_PORTS or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def _same(spec: Object, before: Object, *keys: str) -> bool:
    return all(spec.get(key) == before.get(key) for key in keys)
