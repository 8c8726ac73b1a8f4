"""Validation of Service.

Upstream: pkg/apis/core/validation/validation.go, ValidateService, ValidateServiceUpdate and
ValidateServiceStatusUpdate.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.podspec.containers import PROTOCOLS
from tetrapod.core.v1.services.address_validation import (
    addresses_and_families,
    changed_addresses,
    changed_families,
    is_headless,
)
from tetrapod.core.v1.services.changes import externally_accessible, needs_health_port
from tetrapod.core.validation.names import (
    address,
    dns_label,
    dns_subdomain,
    errors_from,
    known,
    network,
    not_special_address,
    one_of,
    port_number,
    port_number_or_name,
    qualified_name,
)
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.ip_addresses import parse_sloppy
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import validate_labels
from tetrapod.machinery.names import is_dns1123_subdomain

TYPES: Final = frozenset({"ClusterIP", "NodePort", "LoadBalancer", "ExternalName"})
_POLICIES: Final = frozenset({"Cluster", "Local"})
_AFFINITIES: Final = frozenset({"ClientIP", "None"})
_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
_IP_MODES: Final = frozenset({"VIP", "Proxy"})
_MAX_AFFINITY: Final = 86400
_ONLY_BALANCER: Final = "may only be used when `type` is 'LoadBalancer'"
_HINTS, _MODE = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"
_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"


def validate(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Validate a Service.

    - It has ports, unless it is headless or of type ExternalName. Several ports have unique names.
    - The fields fit its type, such as externalName, the load balancer class and source ranges, and traffic policies.
    - Addresses, IP families, session affinity, selector and external IPs are valid.

    Args:
        old: the stored Service; None on create. Addresses and ranges that it contains may keep a legacy format.
    """
    spec, annotations = obj.get("spec") or {}, obj["metadata"].get("annotations") or {}
    old_spec = (old or {}).get("spec") or {}
    kind, ports = spec.get("type") or "", spec.get("ports") or []
    errors: list[FieldError] = []
    if annotations and _MODE in annotations and annotations.get(_HINTS, annotations[_MODE]) != annotations[_MODE]:
        text = f"must match annotations[{_HINTS}] when both are specified"
        errors.append(field.invalid(f"metadata.annotations[{_MODE}]", annotations[_MODE], text))
    if not ports and not is_headless(spec) and kind != "ExternalName":
        errors.append(field.required("spec.ports"))
    errors += _by_type(spec, kind)
    names: set[str] = set()
    for i, port in enumerate(ports):
        errors += _port(port, len(ports) > 1, names, f"spec.ports[{i}]")
    if selector := spec.get("selector"):
        errors += validate_labels(selector, "spec.selector")
    errors += _session_affinity(spec)
    errors += addresses_and_families(spec, old_spec)
    for i, ip in enumerate(spec.get("externalIPs") or ()):
        at = f"spec.externalIPs[{i}]"
        errors += address(ip, at, old_spec.get("externalIPs")) or not_special_address(ip, at)
    errors += one_of(kind, TYPES, "spec.type")
    errors += _port_conflicts(ports, kind)
    errors += _source_ranges(obj, old, kind)
    if spec.get("allocateLoadBalancerNodePorts") is not None and kind != "LoadBalancer":
        errors.append(field.forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCER))
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        errors.append(field.required("allocateLoadBalancerNodePorts"))
    errors += _balancer_class(spec, None)
    errors += _traffic(spec, kind)
    if (distribution := spec.get("trafficDistribution")) is not None:
        errors += known(distribution, _DISTRIBUTIONS, "spec.trafficDistribution", typed=False)
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated Service: the fields that must not change, and then the rules for a new one.

    Immutable are the primary cluster IP and IP family, and a healthCheckNodePort and a loadBalancerClass in use.
    """
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    errors = changed_addresses(spec, old_spec) + changed_families(spec, old_spec)
    errors += _balancer_class(spec, old_spec)
    port_changed = (spec.get("healthCheckNodePort") or 0) != (old_spec.get("healthCheckNodePort") or 0)
    if port_changed and needs_health_port(old_spec) and needs_health_port(spec):
        errors.append(field.forbidden("spec.healthCheckNodePort", "field is immutable"))
    return errors + validate(new, old)


def _by_type(spec: Object, kind: str) -> list[FieldError]:
    if kind in ("LoadBalancer", "NodePort"):
        text = f"may not be set to 'None' for {kind} services"
        return [field.invalid("spec.clusterIPs[0]", "None", text)] if is_headless(spec) else []
    if kind != "ExternalName":
        return []
    text = "may not be set for ExternalName services"
    errors = [field.forbidden(f"spec.{key}", text) for key in ("clusterIPs", "ipFamilies") if spec.get(key)]
    if spec.get("ipFamilyPolicy") is not None:
        errors.append(field.forbidden("spec.ipFamilyPolicy", text))
    name = (spec.get("externalName") or "").removesuffix(".")
    return errors + (dns_subdomain(name, "spec.externalName") if name else [field.required("spec.externalName")])


def _port(port: Object, named: bool, names: set[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    name = port.get("name") or ""
    if name:
        errors += dns_label(name, f"{path}.name")
        if name in names:
            errors.append(field.duplicate(f"{path}.name", name))
        names.add(name)
    elif named:
        errors.append(field.required(f"{path}.name"))
    errors += port_number(port.get("port") or 0, f"{path}.port")
    errors += one_of(port.get("protocol"), PROTOCOLS, f"{path}.protocol")
    errors += port_number_or_name(port.get("targetPort"), f"{path}.targetPort")
    if (protocol := port.get("appProtocol")) is not None:
        errors += qualified_name(protocol, f"{path}.appProtocol")
    return errors


def _session_affinity(spec: Object) -> list[FieldError]:
    affinity, config, path = (
        spec.get("sessionAffinity") or "",
        spec.get("sessionAffinityConfig"),
        "spec.sessionAffinityConfig",
    )
    errors = one_of(affinity, _AFFINITIES, "spec.sessionAffinity")
    if affinity == "None" and config is not None:
        errors.append(field.forbidden(path, "must not be set when session affinity is None"))
    if affinity != "ClientIP":
        return errors
    needed = "when session affinity type is ClientIP"
    if config is None:
        return [*errors, field.required(path, needed)]
    if (client := config.get("clientIP")) is None:
        return [*errors, field.required(f"{path}.clientIP", needed)]
    if (seconds := client.get("timeoutSeconds")) is None:
        return [*errors, field.required(f"{path}.clientIP.timeoutSeconds", needed)]
    if not 0 < seconds <= _MAX_AFFINITY:
        text = f"must be greater than 0 and less than {_MAX_AFFINITY}"
        errors.append(field.invalid(f"{path}.clientIP.timeoutSeconds", seconds, text))
    return errors


def _port_conflicts(ports: list[Object], kind: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if kind == "ClusterIP":
        errors += [
            field.forbidden(f"spec.ports[{i}].nodePort", "may not be used when `type` is 'ClusterIP'")
            for i, port in enumerate(ports)
            if port.get("nodePort")
        ]
    seen: set[tuple[Any, Any]] = set()
    for i, port in enumerate(ports):
        key = (port.get("protocol"), port.get("nodePort"))
        if port.get("nodePort") and key in seen:
            errors.append(field.duplicate(f"spec.ports[{i}].nodePort", port["nodePort"]))
        seen.add(key)
    seen = set()
    for i, port in enumerate(ports):
        key = (port.get("protocol"), port.get("port"))
        if key in seen:
            shown = {
                "Name": "",
                "Protocol": key[0] or "",
                "AppProtocol": None,
                "Port": key[1] or 0,
                "TargetPort": 0,
                "NodePort": 0,
            }
            errors.append(field.duplicate(f"spec.ports[{i}]", shown))
        seen.add(key)
    return errors


def _source_ranges(obj: Object, old: Object | None, kind: str) -> list[FieldError]:
    """Validate the load balancer source ranges: spec.loadBalancerSourceRanges or, if it is empty, the older annotation.

    Whitespace around ranges is accepted in both, and ranges of the stored object may keep a legacy format. The capital
    letter in the error path is upstream's.

    Args:
        old: the stored Service; None on create.
        kind: spec.type.
    """
    spec, annotations = obj.get("spec") or {}, obj["metadata"].get("annotations") or {}
    errors: list[FieldError] = []
    if ranges := spec.get("loadBalancerSourceRanges"):
        path = "spec.LoadBalancerSourceRanges"
        if kind != "LoadBalancer":
            errors.append(field.forbidden(path, _ONLY_BALANCER))
        old_ranges = [r.strip() for r in ((old or {}).get("spec") or {}).get("loadBalancerSourceRanges") or ()]
        for i, value in enumerate(ranges):
            errors += network(value.strip(), f"{path}[{i}]", old_ranges)
    elif _RANGES in annotations:
        path = f"metadata.annotations[{_RANGES}]"
        if kind != "LoadBalancer":
            errors.append(field.forbidden(path, _ONLY_BALANCER))
        stored = old is not None and (old["metadata"].get("annotations") or {}).get(_RANGES, "") == annotations[_RANGES]
        if not stored and (value := annotations[_RANGES].strip()):
            for part in value.split(","):
                errors += network(part.strip(), path)
    return errors


def _balancer_class(spec: Object, old_spec: Object | None) -> list[FieldError]:
    balancer_class, path = spec.get("loadBalancerClass"), "spec.loadBalancerClass"
    errors: list[FieldError] = []
    if (
        old_spec is not None
        and old_spec.get("type") == spec.get("type") == "LoadBalancer"
        and old_spec.get("loadBalancerClass") != balancer_class
    ):
        errors.append(field.invalid(path, field.as_typed(balancer_class), "may not change once set"))
    if balancer_class is None:
        return errors
    if spec.get("type") == "LoadBalancer":
        return errors + qualified_name(balancer_class, path)
    return [*errors, field.forbidden(path, _ONLY_BALANCER)]


def _traffic(spec: Object, kind: str) -> list[FieldError]:
    external, internal, health = (
        spec.get("externalTrafficPolicy") or "",
        spec.get("internalTrafficPolicy"),
        "spec.healthCheckNodePort",
    )
    errors: list[FieldError] = []
    if externally_accessible(spec):
        errors += one_of(external, _POLICIES, "spec.externalTrafficPolicy")
    elif external:
        errors.append(
            field.invalid("spec.externalTrafficPolicy", external, "may only be set for externally-accessible services")
        )
    port = spec.get("healthCheckNodePort") or 0
    if needs_health_port(spec):
        errors += port_number(port, health) if port else [field.required(health)]
    elif port:
        text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(field.invalid(health, port, text))
    if internal is None:
        if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
            errors.append(field.required("spec.internalTrafficPolicy"))
    else:
        errors += known(internal, _POLICIES, "spec.internalTrafficPolicy")
    return errors


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the load balancer ingress in a Service's status; stored addresses may keep a legacy format."""
    spec, status = new.get("spec") or {}, (new.get("status") or {}).get("loadBalancer") or {}
    ingresses, path = status.get("ingress") or [], "status.loadBalancer.ingress"
    old_ips = [i.get("ip") or "" for i in ((old.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()]
    if ingresses and spec.get("type") != "LoadBalancer":
        return [field.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    return [error for i, ingress in enumerate(ingresses) for error in ingress_errors(ingress, f"{path}[{i}]", old_ips)]


def ingress_errors(ingress: Object, path: str, stored_values: list[str]) -> list[FieldError]:
    """Validate one load balancer ingress.

    An IP address needs an ipMode, which is known, and no ipMode is set without it. A host name is a DNS name, not an
    address.

    Args:
        path: the field path of the ingress, for errors.
        stored_values: the addresses of the stored object, which may keep a legacy format.
    """
    ip, mode, host = ingress.get("ip") or "", ingress.get("ipMode"), ingress.get("hostname") or ""
    errors = address(ip, f"{path}.ip", stored_values) if ip else []
    if mode is None:
        if ip:
            errors.append(field.required(f"{path}.ipMode", "must be specified when `ip` is set"))
    elif not ip:
        errors.append(field.forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set"))
    else:
        errors += known(mode, _IP_MODES, f"{path}.ipMode")
    if host:
        errors += errors_from(is_dns1123_subdomain, host, f"{path}.hostname")
        if parse_sloppy(host) is not None:
            errors.append(field.invalid(f"{path}.hostname", host, "must be a DNS name, not an IP address"))
    return errors
