"""Defaults of Service. Upstream: pkg/apis/core/v1/defaults.go, SetDefaults_Service."""

from __future__ import annotations

from tetrapod.machinery.gvk import Object


def set_defaults(obj: Object) -> None:
    """Set the defaults of a Service in place, except cluster IPs, IP families and node ports, which are allocated.

    - sessionAffinity is None; ClientIP has a timeout of 3 hours.
    - The type is ClusterIP. Ports have the protocol TCP and the port itself as targetPort.
    - Traffic policies, where they apply, are Cluster.
    - A LoadBalancer allocates node ports, and the ipMode of its addresses is VIP.
    """
    spec = obj.setdefault("spec", {})
    if not spec.get("sessionAffinity"):
        spec["sessionAffinity"] = "None"
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    if spec["sessionAffinity"] == "ClientIP":
        config = spec.get("sessionAffinityConfig") or {}
        client_ip = config.get("clientIP") or {}
        if client_ip.get("timeoutSeconds") is None:
            client_ip["timeoutSeconds"] = 10800
        spec["sessionAffinityConfig"] = {**config, "clientIP": client_ip}
    if not spec.get("type"):
        spec["type"] = "ClusterIP"
    for port in spec.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
        target = port.get("targetPort")
        if target in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    external = spec["type"] in ("NodePort", "LoadBalancer") or (
        spec["type"] == "ClusterIP" and bool(spec.get("externalIPs"))
    )
    if external and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if spec["type"] in ("NodePort", "LoadBalancer", "ClusterIP") and spec.get("internalTrafficPolicy") is None:
        spec["internalTrafficPolicy"] = "Cluster"
    if spec["type"] == "LoadBalancer":
        if spec.get("allocateLoadBalancerNodePorts") is None:
            spec["allocateLoadBalancerNodePorts"] = True
        for ingress in ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ():
            if ingress.get("ip") and ingress.get("ipMode") is None:
                ingress["ipMode"] = "VIP"
