"""What an update of a Service keeps, drops and gives back (upstream: patchAllocatedValues, dropTypeDependentFields …)."""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.gvk import Object

HEADLESS: Final = "None"
_WITH_PORTS: Final = frozenset({"NodePort", "LoadBalancer"})


def needs_address(spec: Object) -> bool:
    """A type that nobody knows needs one too: it is refused later, by its name."""
    return spec.get("type") != "ExternalName"


def addresses_of(obj: Object) -> list[str]:
    spec = obj.get("spec") or {}
    if not needs_address(spec):
        return []
    return [ip for ip in spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else []) if ip and ip != HEADLESS]


def ports_of(obj: Object) -> list[int]:
    spec = obj.get("spec") or {}
    ports = [p["nodePort"] for p in spec.get("ports") or () if p.get("nodePort")]
    return [*ports, spec["healthCheckNodePort"]] if spec.get("healthCheckNodePort") else ports


def patch_allocated(new: Object, old: Object) -> None:
    """An update that leaves out what was allocated keeps it (upstream: patchAllocatedValues)."""
    spec, before = new.setdefault("spec", {}), old.get("spec") or {}
    if needs_address(spec) and needs_address(before):
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
        new["status"] = {**(new.get("status") or {}), "loadBalancer": {}}
    external = spec.get("type") in _WITH_PORTS or bool(spec.get("externalIPs"))
    if not external and _same(spec, before, "externalTrafficPolicy"):
        spec.pop("externalTrafficPolicy", None)
    if spec.get("type") == "ExternalName" != before.get("type") and _same(spec, before, "internalTrafficPolicy"):
        spec.pop("internalTrafficPolicy", None)


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
