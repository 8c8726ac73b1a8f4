"""Fields of a Service that an update keeps from the stored object, or drops because the type has changed.

Upstream: pkg/registry/core/service/{strategy.go,storage/storage.go}.
"""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.gvk import Object

HEADLESS: Final = "None"
WITH_PORTS: Final = frozenset({"NodePort", "LoadBalancer"})


def needs_address(spec: Object) -> bool:
    """Return whether a Service with this spec has cluster IPs or is headless: every type except ExternalName.

    An unknown type counts too; validation rejects it later.
    """
    return spec.get("type") != "ExternalName"


def addresses_of(obj: Object) -> list[str]:
    """Return the cluster IPs of a Service; [] if it is headless or of type ExternalName."""
    spec = obj.get("spec") or {}
    if not needs_address(spec):
        return []
    return [
        ip
        for ip in spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
        if ip and ip != HEADLESS
    ]


def node_ports_of(spec: Object) -> list[int]:
    """Return the node ports of a spec's ports that have one, in the order of the ports."""
    return [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]


def ports_of(obj: Object) -> list[int]:
    """Return all node ports of a Service, with the health check node port last if it is set."""
    spec = obj.get("spec") or {}
    ports = node_ports_of(spec)
    return [*ports, spec["healthCheckNodePort"]] if spec.get("healthCheckNodePort") else ports


def needs_health_port(spec: Object) -> bool:
    """Return whether the Service needs a health check node port: a LoadBalancer with externalTrafficPolicy Local."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _keeps_ports(spec: Object) -> bool:
    """Return whether a Service with this spec has node ports: a NodePort, or a LoadBalancer that allocates them.

    Node ports that an update of such a Service leaves unset are copied from the stored object.
    """
    return spec.get("type") == "NodePort" or (
        spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False
    )


def patch_allocated(new: Object, old: Object) -> None:
    """Copy allocated addresses and ports that `new` leaves unset from `old`; node ports are matched by port name.

    Upstream: patchAllocatedValues
    """
    spec, old_spec = new.setdefault("spec", {}), old.get("spec") or {}
    if needs_address(spec) and needs_address(old_spec):
        for key in ("clusterIP", "clusterIPs"):
            if not spec.get(key) and old_spec.get(key):
                spec[key] = old_spec[key] if key == "clusterIP" else list(old_spec[key])
    if _keeps_ports(spec) and _keeps_ports(old_spec):
        used = set(node_ports_of(old_spec)) & set(node_ports_of(spec))
        node_port_by_name = {port.get("name"): port.get("nodePort") for port in old_spec.get("ports") or ()}
        for port in spec.get("ports") or ():
            existing = node_port_by_name.get(port.get("name"))
            if not port.get("nodePort") and existing and existing not in used:
                port["nodePort"] = existing
    kept_health = old_spec.get("healthCheckNodePort")
    if kept_health and needs_health_port(spec) and needs_health_port(old_spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = kept_health


def normalize_addresses(new: Object, old: Object | None) -> None:
    """Set clusterIPs of `new` from clusterIP where the client set, changed or cleared only clusterIP.

    Args:
        old: the stored Service; None on create.

    Upstream: normalizeClusterIPs
    """
    spec = new["spec"]
    if old is None:
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        return
    old_spec = old.get("spec") or {}
    ip, old_ip = spec.get("clusterIP") or "", old_spec.get("clusterIP") or ""
    if ip == old_ip:
        if old_spec.get("clusterIPs") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = list(old_spec["clusterIPs"])
    elif (spec.get("clusterIPs") or []) == (old_spec.get("clusterIPs") or []):
        if old_ip and not ip:
            spec.pop("clusterIPs", None)
        else:
            spec["clusterIPs"] = [ip]


def drop_unused(new: Object, old: Object) -> None:
    """Drop fields of `new` that the new type of the Service does not have and the stored type had.

    A field that the update sets to another value is kept, so that validation can reject it. If the type is not
    LoadBalancer, status.loadBalancer is always emptied.

    Upstream: dropTypeDependentFields
    """
    spec, old_spec = new["spec"], old.get("spec") or {}
    if needs_address(old_spec) and not needs_address(spec):
        if _same(spec, old_spec, "clusterIP", "clusterIPs"):
            for key in ("clusterIP", "clusterIPs"):
                spec.pop(key, None)
        for key in ("ipFamilies", "ipFamilyPolicy"):
            if _same(spec, old_spec, key):
                spec.pop(key, None)
    if (
        old_spec.get("type") in WITH_PORTS
        and spec.get("type") not in WITH_PORTS
        and set(node_ports_of(spec)) <= set(node_ports_of(old_spec))
    ):
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)
    if needs_health_port(old_spec) and not needs_health_port(spec) and _same(spec, old_spec, "healthCheckNodePort"):
        spec.pop("healthCheckNodePort", None)
    if old_spec.get("type") == "LoadBalancer" != spec.get("type"):
        for key in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if _same(spec, old_spec, key):
                spec.pop(key, None)
    if (
        externally_accessible(old_spec)
        and not externally_accessible(spec)
        and _same(spec, old_spec, "externalTrafficPolicy")
    ):
        spec.pop("externalTrafficPolicy", None)
    if spec.get("type") != "LoadBalancer":
        new["status"] = {**(new.get("status") or {}), "loadBalancer": {}}


def externally_accessible(spec: Object) -> bool:
    """Return whether the Service is accessible from outside: node port, load balancer, or ClusterIP with externalIPs.

    Upstream: pkg/api/service/util.go, ExternallyAccessible
    """
    return spec.get("type") in WITH_PORTS or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def _same(spec: Object, old_spec: Object, *keys: str) -> bool:
    return all(spec.get(key) == old_spec.get(key) for key in keys)
