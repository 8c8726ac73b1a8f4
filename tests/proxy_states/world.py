"""Random Services, EndpointSlices and labels of the node, written to the API by a random number generator.

The same seed makes the same states. After each step, markers are changed: a Service, and a slice with endpoints for
each zone, whose rules show that a proxy has received everything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from proxy_states.namespaces import NODE
from support.https_client import MERGE, HttpsClient, Reply

NAME: Final = "node1"
NAMESPACE: Final = "default"
ZONES: Final = ("", "a", "b", "c")
_SERVICES: Final = f"/api/v1/namespaces/{NAMESPACE}/services"
_SLICES: Final = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
_NODE: Final = f"/api/v1/nodes/{NAME}"
_ZONE: Final = "topology.kubernetes.io/zone"
_RANGES: Final = (
    "10.0.0.0/8", "10.10.0.0/24", "192.0.2.0/24", "203.0.113.7/32", "0.0.0.0/0", "fd00::/16", "2001:db8::/48", "::/0",
)  # fmt: skip
_PORTS: Final = (
    {"name": "http", "port": 80, "protocol": "TCP"},
    {"name": "dns", "port": 53, "protocol": "UDP"},
    {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
    {"name": "sctp", "port": 7000, "protocol": "SCTP"},
    {"name": "metrics", "port": 9090, "protocol": "TCP", "appProtocol": "http"},
)


@dataclass
class World:
    """The objects of the API, and the generator that changes them."""

    client: HttpsClient
    random: Random
    services: dict[str, Any] = field(default_factory=dict)
    slices: dict[str, list[str]] = field(default_factory=dict)
    """The names of the slices of each Service."""
    steps: int = 0
    zone: str = ""
    _count: int = 0

    # --- the fixed part

    def begin(self) -> None:
        """Create the node and the markers."""
        self._must(self.client.call("POST", "/api/v1/nodes", {"metadata": {"name": NAME}}))
        addresses = [{"type": "InternalIP", "address": address} for address in NODE]
        status = {"status": {"addresses": addresses}}
        self._must(self.client.call("PATCH", f"{_NODE}/status", status, MERGE))
        spec = {"spec": {"podCIDRs": ["10.244.1.0/24", "fd00:244:1::/64"], "podCIDR": "10.244.1.0/24"}}
        self._must(self.client.call("PATCH", _NODE, spec, MERGE))
        marker = {"type": "ClusterIP", "clusterIP": "10.96.255.1", "ports": [{"name": "m", "port": 1}]}
        self._must(self.client.call("POST", _SERVICES, {"metadata": {"name": "marker"}, "spec": marker}))
        self._must(self.client.call("POST", _SLICES, self._marker_slice()))

    def mark(self) -> list[str]:
        """Change the markers, and return parts of rules of which each proxy has one once it has received all."""
        self.steps += 1
        ports = [{"name": "m", "port": self.steps}]
        self._must(self.client.call("PATCH", f"{_SERVICES}/marker", {"spec": {"ports": ports}}, MERGE))
        self._must(self.client.call("PUT", f"{_SLICES}/marker", self._marker_slice()))
        used = [zone for zone in ZONES[1:] if not self.zone or zone == self.zone]
        return [f"--dport {self.steps} "] + [
            f"--to-destination 10.244.9.{ZONES.index(zone)}:{1000 + self.steps}" for zone in used
        ]

    def unwanted_marks(self) -> list[str]:
        """Return parts of rules that no proxy has once it knows the zone of the node."""
        others = [zone for zone in ZONES[1:] if self.zone and zone != self.zone]
        return [f"--to-destination 10.244.9.{ZONES.index(zone)}:" for zone in others]

    def repeat_zone(self) -> None:
        """Put the node into another zone and back.

        kube-proxy can miss the zone at its start: its informer may report the Node before the proxier has registered
        for it (cmd/kube-proxy/app/server.go, NewNodeTopologyConfig and RegisterEventHandler).
        """
        for zone in ("elsewhere", self.zone or None):
            self._must(self.client.call("PATCH", _NODE, {"metadata": {"labels": {_ZONE: zone}}}, MERGE))

    def _marker_slice(self) -> Any:
        endpoints = [
            {"addresses": [f"10.244.9.{ZONES.index(zone)}"], "hints": {"forZones": [{"name": zone}]}}
            for zone in ZONES[1:]
        ]
        return {
            "metadata": {"name": "marker", "labels": {"kubernetes.io/service-name": "marker"}},
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": [{"name": "m", "port": 1000 + self.steps}],
        }

    def grow(self) -> str:
        """Create a Service with so many endpoints that proxies save comments and delete chains less often."""
        spec = {"clusterIP": "10.96.255.2", "ports": [{"name": "m", "port": 80}]}
        self._must(self.client.call("POST", _SERVICES, {"metadata": {"name": "large"}, "spec": spec}))
        for part in range(2):
            body = {
                "metadata": {"name": f"large-{part}", "labels": {"kubernetes.io/service-name": "large"}},
                "addressType": "IPv4",
                "endpoints": [{"addresses": [f"10.245.{part * 3 + i // 200}.{1 + i % 200}"]} for i in range(600)],
                "ports": [{"name": "m", "port": 80}],
            }
            self._must(self.client.call("POST", _SLICES, body))
        return "create a Service with 1,200 endpoints"

    def shrink(self) -> str:
        """Delete that Service."""
        self._must(self.client.call("DELETE", f"{_SERVICES}/large"))
        for part in range(2):
            self._must(self.client.call("DELETE", f"{_SLICES}/large-{part}"))
        return "delete the Service with 1,200 endpoints"

    # --- changes

    def step(self) -> list[str]:
        """Make some random changes, and return what they were."""
        return [self._change() for _ in range(self.random.randint(1, 4))]

    def _change(self) -> str:
        choices: list[Callable[[], str]] = [self._create_service] * (4 if len(self.services) < 12 else 1)
        if self.services:
            choices += [self._update_service] * 3 + [self._delete_service]
            choices += [self._create_slice] * 4
            choices += [self._update_load_balancer] * 2
        if any(self.slices.values()):
            choices += [self._update_slice] * 5 + [self._delete_slice]
        choices.append(self._move_node)
        return self.random.choice(choices)()

    def _create_service(self) -> str:
        self._count += 1
        name = f"service-{self._count}"
        families = self.random.choice((["IPv4"], ["IPv6"], ["IPv4", "IPv6"], ["IPv6", "IPv4"]))
        spec = {"ipFamilies": families, "ipFamilyPolicy": "RequireDualStack" if len(families) > 1 else "SingleStack"}
        headless = self.random.random() < 0.05
        if headless:
            spec["clusterIP"] = "None"
        labels = {"service.kubernetes.io/service-proxy-name": "other"} if self.random.random() < 0.05 else {}
        service = {"metadata": {"name": name, "labels": labels}, "spec": {**spec, **self._spec(families, headless)}}
        self.services[name] = self._must(self.client.call("POST", _SERVICES, service))
        self.slices[name] = []
        if self.random.random() < 0.8:
            return f"create {name}, {self._create_slice(name)}"
        return f"create {name}"

    def _spec(self, families: list[str], headless: bool = False) -> dict[str, Any]:
        random = self.random
        kinds = ("ClusterIP",) if headless else ("ClusterIP", "ClusterIP", "NodePort", "LoadBalancer", "LoadBalancer")
        kind = random.choice(kinds)
        ports = random.sample(_PORTS, random.randint(1, 3)) if random.random() < 0.8 else [{"port": 443}]
        spec: dict[str, Any] = {"type": kind, "ports": [dict(port) for port in ports]}
        if random.random() < 0.3:
            timeout = random.choice((10, 10800))
            spec |= {
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": timeout}},
            }
        spec["internalTrafficPolicy"] = random.choice(("Cluster", "Cluster", "Local"))
        if random.random() < 0.3 and not headless:
            v4, v6 = f"203.0.113.{random.randint(1, 250)}", f"2001:db8::{random.randint(1, 9000):x}"
            spec["externalIPs"] = random.choice(([v4], [v6], [v4, v6]))
        if kind != "ClusterIP" or spec.get("externalIPs"):
            spec["externalTrafficPolicy"] = random.choice(("Cluster", "Local"))
        if kind == "LoadBalancer":
            ranges = random.sample(_RANGES, random.randint(0, 3))
            spec["loadBalancerSourceRanges"] = [text for text in ranges if _family(text) in families]
            spec["allocateLoadBalancerNodePorts"] = random.random() < 0.8
        return spec

    def _update_service(self) -> str:
        name = self.random.choice(list(self.services))
        service = self._must(self.client.call("GET", f"{_SERVICES}/{name}"))
        spec = service["spec"]
        if spec.get("clusterIP") == "None":
            return f"leave {name}"
        kept = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
        new = {key: spec[key] for key in kept} | self._spec(spec["ipFamilies"])
        if self.random.random() < 0.5:  # a small change
            new = {**spec, "ports": new["ports"]} if self.random.random() < 0.5 else {**spec}
            new["internalTrafficPolicy"] = self.random.choice(("Cluster", "Local"))
            if "externalTrafficPolicy" in new:
                new["externalTrafficPolicy"] = self.random.choice(("Cluster", "Local"))
                if new["externalTrafficPolicy"] == "Cluster":
                    new.pop("healthCheckNodePort", None)
        service["spec"] = new
        if new["type"] != "LoadBalancer":
            service["status"] = {"loadBalancer": {}}
        self.services[name] = self._must(self.client.call("PUT", f"{_SERVICES}/{name}", service))
        return f"update {name}"

    def _update_load_balancer(self) -> str:
        balanced = [name for name, service in self.services.items() if service["spec"]["type"] == "LoadBalancer"]
        if not balanced:
            return self._update_service()
        name = self.random.choice(balanced)
        ingress: list[Any] = []
        for _ in range(self.random.randint(0, 3)):
            number = self.random.randint(1, 200)
            address = self.random.choice((f"198.51.100.{number}", f"2001:db8:1::{number:x}"))
            entry = {"ip": address, "ipMode": self.random.choice(("VIP", "VIP", "VIP", "Proxy"))}
            ingress.append({"hostname": f"lb{number}.example"} if self.random.random() < 0.1 else entry)
        status = {"status": {"loadBalancer": {"ingress": ingress}}}
        self._must(self.client.call("PATCH", f"{_SERVICES}/{name}/status", status, MERGE))
        return f"set load balancer of {name}"

    def _delete_service(self) -> str:
        name = self.random.choice(list(self.services))
        del self.services[name]
        self._must(self.client.call("DELETE", f"{_SERVICES}/{name}"))
        deleted = self.slices.pop(name)
        if self.random.random() < 0.7:
            for slice_name in deleted:
                self._must(self.client.call("DELETE", f"{_SLICES}/{slice_name}"))
        return f"delete {name}"

    def _create_slice(self, service: str = "") -> str:
        service = service or self.random.choice(list(self.services))
        self._count += 1
        name = f"slice-{self._count}"
        families = self.services[service]["spec"]["ipFamilies"]
        body = self._slice(service, name, self.random.choice(families))
        self._must(self.client.call("POST", _SLICES, body))
        self.slices[service].append(name)
        return f"create {name} of {service}"

    def _slice(self, service: str, name: str, family: str) -> Any:
        random, spec = self.random, self.services[service]["spec"]
        ports: list[Any] = []
        for port in spec["ports"]:
            if random.random() < 0.9:
                entry = {"name": port.get("name", ""), "protocol": port["protocol"], "port": random.randint(1, 9999)}
                ports.append(entry if random.random() < 0.95 else {**entry, "port": None})
        hints = random.choice(("none", "none", "zones", "nodes", "both", "some"))
        endpoints = [self._endpoint(family, hints) for _ in range(random.choice((0, 1, 1, 2, 3, 5, 8)))]
        labels = {"kubernetes.io/service-name": service}
        if spec.get("clusterIP") == "None":
            labels["service.kubernetes.io/headless"] = ""
        return {
            "metadata": {"name": name, "labels": labels},
            "addressType": family,
            "ports": ports,
            "endpoints": list({endpoint["addresses"][0]: endpoint for endpoint in endpoints}.values()),
        }

    def _endpoint(self, family: str, hints: str) -> Any:
        random = self.random
        node = random.choice((1, 1, 2, 3))
        number = random.randint(1, 30)
        address = f"10.244.{node}.{number}" if family == "IPv4" else f"fd00:244:{node}::{number:x}"
        ready = random.random() < 0.6
        terminating = not ready and random.random() < 0.6
        conditions: dict[str, bool] = {"ready": ready, "serving": ready or random.random() < 0.6}
        conditions["terminating"] = terminating
        if random.random() < 0.1:
            conditions = {}
        endpoint: dict[str, Any] = {"addresses": [address], "conditions": conditions}
        if random.random() < 0.9:
            endpoint |= {"nodeName": f"node{node}", "zone": ZONES[node]}
        if hints in ("zones", "both") or (hints == "some" and random.random() < 0.5):
            zones = random.sample(ZONES[1:], random.randint(1, 2))
            endpoint["hints"] = {"forZones": [{"name": zone} for zone in zones]}
        if hints in ("nodes", "both"):
            nodes = random.sample(("node1", "node2", "node3"), random.randint(1, 2))
            endpoint.setdefault("hints", {})["forNodes"] = [{"name": name} for name in nodes]
        return endpoint

    def _update_slice(self) -> str:
        service, name = self._any_slice()
        old = self._must(self.client.call("GET", f"{_SLICES}/{name}"))
        new = self._slice(service, name, old["addressType"])
        if self.random.random() < 0.5:  # only the conditions and hints change, and some endpoints go
            new = old
            kept = [endpoint for endpoint in old.get("endpoints") or () if self.random.random() < 0.9]
            hints = self.random.choice(("none", "zones", "nodes"))
            for endpoint in kept:
                fresh = self._endpoint(old["addressType"], hints)
                endpoint["conditions"] = fresh["conditions"]
                endpoint["hints"] = fresh.get("hints")
            new["endpoints"] = kept
        self._must(self.client.call("PUT", f"{_SLICES}/{name}", new))
        return f"update {name} of {service}"

    def _delete_slice(self) -> str:
        service, name = self._any_slice()
        self.slices[service].remove(name)
        self._must(self.client.call("DELETE", f"{_SLICES}/{name}"))
        return f"delete {name} of {service}"

    def _any_slice(self) -> tuple[str, str]:
        return self.random.choice([(service, name) for service, names in self.slices.items() for name in names])

    def _move_node(self) -> str:
        self.zone = self.random.choice(ZONES)
        labels = {"metadata": {"labels": {_ZONE: self.zone or None}}}
        self._must(self.client.call("PATCH", _NODE, labels, MERGE))
        return f"put the node into the zone {self.zone or '(none)'}"

    def _must(self, reply: Reply) -> Any:
        assert reply.status in (200, 201, 202), reply
        return reply.body


def _family(cidr: str) -> str:
    return "IPv6" if ":" in cidr else "IPv4"
