"""Defaults of services, endpoints, ingress classes and network policies. Upstream: pkg/apis/{core,networking,discovery}/v1/defaults.go."""

from __future__ import annotations

from tetrapod.machinery.gvk import Object


def default_endpoint_slice(obj: Object) -> None:
    """Set the defaults of an EndpointSlice."""
    for port in obj.get("ports") or ():
        if port.get("name") is None:
            port["name"] = ""
        if port.get("protocol") is None:
            port["protocol"] = "TCP"


def default_network_policy(obj: Object) -> None:
    """Set the defaults of a NetworkPolicy."""
    spec = obj.setdefault("spec", {})
    for rule in [*(spec.get("ingress") or ()), *(spec.get("egress") or ())]:
        for port in rule.get("ports") or ():
            if port.get("protocol") is None:
                port["protocol"] = "TCP"
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def default_ingress_class(obj: Object) -> None:
    """Set the defaults of an IngressClass."""
    parameters = (obj.get("spec") or {}).get("parameters")
    if parameters is not None and parameters.get("scope") is None:
        parameters["scope"] = "Cluster"
