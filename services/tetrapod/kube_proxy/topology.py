"""Which endpoints of a port traffic may be sent to, by traffic policies, topology hints and conditions.

Upstream: pkg/proxy/topology.go
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tetrapod.kube_proxy.endpoints import Endpoint
from tetrapod.kube_proxy.service_ports import ServicePort

_Test = Callable[[Endpoint], bool]


@dataclass(frozen=True, slots=True)
class Place:
    """The node and the zone of this proxy.

    Attributes:
        node: the name of the node.
        zone: its zone; "" if it is unknown.
    """

    node: str
    zone: str = ""


@dataclass(frozen=True, slots=True)
class Reachable:
    """The endpoints of a port that this node may use.

    Attributes:
        cluster: those for the traffic policy Cluster.
        local: those for the traffic policy Local.
        all: both together.
        anywhere: whether the port has usable endpoints on any node, perhaps not on this one.
    """

    cluster: list[Endpoint] = field(default_factory=list)
    local: list[Endpoint] = field(default_factory=list)
    all: list[Endpoint] = field(default_factory=list)
    anywhere: bool = False


def reachable(endpoints: Sequence[Endpoint], port: ServicePort, place: Place) -> Reachable:
    """Return the endpoints that this node may use.

    These are ready endpoints. If all are missing, endpoints are used that terminate and still serve. Each of the two
    policies is treated by itself.

    Args:
        endpoints: the endpoints of the port.
        port: the port.
        place: this node.
    """
    cluster = _cluster_endpoints(endpoints, place) if port.uses_cluster_endpoints else []
    if not port.uses_local_endpoints:
        return Reachable(cluster, [], cluster, bool(cluster))
    local = _usable([endpoint for endpoint in endpoints if endpoint.is_local])
    anywhere = bool(cluster) or bool(_usable(endpoints))
    if not port.uses_cluster_endpoints:
        return Reachable([], local, local, anywhere)
    together = {str(endpoint): endpoint for endpoint in (*cluster, *local)}
    return Reachable(cluster, local, list(together.values()), anywhere)


def _usable(endpoints: Sequence[Endpoint]) -> list[Endpoint]:
    ready = [endpoint for endpoint in endpoints if endpoint.ready]
    return ready or [endpoint for endpoint in endpoints if endpoint.is_fallback]


def _cluster_endpoints(endpoints: Sequence[Endpoint], place: Place) -> list[Endpoint]:
    ready = [endpoint for endpoint in endpoints if endpoint.ready]
    if not ready:
        return _usable(endpoints)
    is_hinted = _hint_test(ready, place)
    return ready if is_hinted is None else [endpoint for endpoint in ready if is_hinted(endpoint)]


def _hint_test(ready: Sequence[Endpoint], place: Place) -> _Test | None:
    """Return a function that says whether an endpoint has a hint for this node, or else for its zone.

    Hints count if every ready endpoint has some and at least one endpoint is hinted. Otherwise the result is None.
    """
    if all(endpoint.nodes for endpoint in ready) and any(place.node in endpoint.nodes for endpoint in ready):
        return lambda endpoint: place.node in endpoint.nodes
    if all(endpoint.zones for endpoint in ready) and any(place.zone in endpoint.zones for endpoint in ready):
        return lambda endpoint: place.zone in endpoint.zones
    return None
