"""Tests of the health servers of the proxy and of Services, over HTTP."""

from __future__ import annotations

import asyncio
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from support.server import free_port
from tetrapod.generic.http.request import Handler
from tetrapod.kube_proxy.configuration import Configuration
from tetrapod.kube_proxy.families import Family
from tetrapod.kube_proxy.health import HealthHandler, ProxyHealth
from tetrapod.kube_proxy.http_server import serve
from tetrapod.kube_proxy.metrics_server import MetricsHandler
from tetrapod.kube_proxy.service_health import ServiceHealth
from tetrapod.kube_proxy.service_ports import ServiceName
from tetrapod.machinery.gvk import Object

NODE: Object = {"metadata": {"name": "node1"}}
NAME = ServiceName("ns", "svc")


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def fetch(port: int, path: str, host: str = "127.0.0.1") -> tuple[int, dict[str, str], str]:
    try:
        with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=10) as answer:
            return answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, {k.lower(): v for k, v in error.headers.items()}, error.read().decode()


async def asked(handler: Handler, path: str) -> tuple[int, dict[str, str], str]:
    port = free_port()
    server = await serve(f"0.0.0.0:{port}", handler)
    try:
        return await asyncio.to_thread(fetch, port, path)
    finally:
        await server.stop(1)


async def test_healthz_names_each_family_and_the_node() -> None:
    clock = Clock()
    health = ProxyHealth(60, clock)
    health.updated(Family.IPV6)
    clock.now += 1
    health.updated(Family.IPV4)
    clock.now += 1.5
    status, headers, body = await asked(HealthHandler(health, lambda: NODE), "/healthz")
    assert (status, headers["content-type"], headers["x-content-type-options"]) == (200, "application/json", "nosniff")
    assert body == (
        '{"lastUpdated":"2023-11-14T22:13:22.5Z","currentTime":"2023-11-14T22:13:22.5Z","nodeEligible":true,'
        '"healthy":true,"status":{"IPv4":{"lastUpdated":"2023-11-14T22:13:21Z","healthy":true},'
        '"IPv6":{"lastUpdated":"2023-11-14T22:13:20Z","healthy":true}}}'
    )


async def test_a_change_that_waits_too_long_makes_the_proxy_unhealthy() -> None:
    clock = Clock()
    health = ProxyHealth(60, clock)
    health.updated(Family.IPV4)
    health.queued(Family.IPV4)
    clock.now += 59
    health.queued(Family.IPV4)
    assert health.healthy
    clock.now += 1
    status, _, body = await asked(HealthHandler(health, lambda: NODE), "/livez")
    assert (status, json.loads(body)) == (
        503,
        {
            "lastUpdated": "2023-11-14T22:13:20Z",
            "currentTime": "2023-11-14T22:14:20Z",
            "healthy": False,
            "status": {"IPv4": {"lastUpdated": "2023-11-14T22:13:20Z", "healthy": False}},
        },
    )
    health.updated(Family.IPV4)
    assert health.healthy


@pytest.mark.parametrize(
    "node",
    [
        None,
        {"metadata": {"name": "node1", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"metadata": {"name": "node1"}, "spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler"}]}},
    ],
)
async def test_a_node_that_goes_away_is_not_eligible_but_alive(node: Object | None) -> None:
    health = ProxyHealth(60)
    health.updated(Family.IPV4)
    status, _, body = await asked(HealthHandler(health, lambda: node), "/healthz")
    assert (status, json.loads(body)["nodeEligible"], json.loads(body)["healthy"]) == (503, False, True)
    status, _, body = await asked(HealthHandler(health, lambda: node), "/livez")
    assert (status, "nodeEligible" in body) == (200, False)


async def test_unknown_paths_are_answered_as_by_go() -> None:
    status, headers, body = await asked(HealthHandler(ProxyHealth(60), lambda: NODE), "/other")
    assert (status, headers["content-type"], body) == (404, "text/plain; charset=utf-8", "404 page not found\n")


async def test_the_health_check_port_of_a_service_counts_endpoints_of_this_node() -> None:
    health, port = ProxyHealth(60), free_port()
    health.updated(Family.IPV4)
    reports: list[tuple[ServiceName, str]] = []

    async def report(service: ServiceName, text: str) -> None:
        reports.append((service, text))

    servers = ServiceHealth("node1", Family.IPV4, ["127.0.0.1"], health, report)
    await servers.serve({NAME: port}, {NAME: 2})
    status, headers, body = await asyncio.to_thread(fetch, port, "/")
    assert (status, headers["x-load-balancing-endpoint-weight"], headers["content-type"]) == (
        200,
        "2",
        "application/json",
    )
    assert body == (
        '{\n\t"service": {\n\t\t"namespace": "ns",\n\t\t"name": "svc"\n\t},\n\t"localEndpoints": 2,\n'
        '\t"serviceProxyHealthy": true\n}'
    )
    await servers.serve({NAME: port}, {})
    assert (await asyncio.to_thread(fetch, port, "/"))[0] == 503
    other = free_port()
    await servers.serve({NAME: other}, {NAME: 1})
    assert (await asyncio.to_thread(fetch, other, "/"))[0] == 200
    socket.create_server(("127.0.0.1", port)).close()  # the former port is free again
    await servers.stop()
    assert reports == []


async def test_a_health_check_port_in_use_is_reported_and_tried_again() -> None:
    reports: list[str] = []

    async def report(service: ServiceName, text: str) -> None:
        reports.append(text)

    health, port = ProxyHealth(60), free_port()
    servers = ServiceHealth("node1", Family.IPV4, ["127.0.0.1"], health, report)
    with socket.create_server(("127.0.0.1", port)):
        await servers.serve({NAME: port}, {NAME: 1})
    assert reports == [
        f'node node1 failed to start healthcheck "ns/svc" on port {port}: listen tcp4 127.0.0.1:{port}: bind: address '
        "already in use"
    ]
    await servers.serve({NAME: port}, {NAME: 1})
    assert (await asyncio.to_thread(fetch, port, "/"))[0] == 200
    await servers.stop()


async def test_no_server_listens_if_the_node_has_none_of_the_addresses() -> None:
    async def report(service: ServiceName, text: str) -> None:
        raise AssertionError(text)

    port = free_port()
    await ServiceHealth("node1", Family.IPV4, [], ProxyHealth(60), report).serve({NAME: port}, {NAME: 1})
    socket.create_server(("0.0.0.0", port)).close()


@pytest.mark.skipif(not socket.has_ipv6, reason="not applicable: no IPv6")
async def test_servers_of_both_families_share_a_port() -> None:
    async def report(service: ServiceName, text: str) -> None:
        raise AssertionError(text)

    health, port = ProxyHealth(60), free_port()
    both = [ServiceHealth("node1", family, None, health, report) for family in Family]
    for servers in both:
        await servers.serve({NAME: port}, {NAME: 1})
    for host in ("127.0.0.1", "[::1]"):
        assert (await asyncio.to_thread(fetch, port, "/", host))[0] == 200
    for servers in both:
        await servers.stop()


@pytest.mark.parametrize(
    ("path", "check"),
    [
        ("/healthz", lambda body: body == "ok"),
        ("/proxyMode", lambda body: body == "iptables"),
        ("/configz", lambda body: json.loads(body)["kubeproxy.config.k8s.io"]["kind"] == "KubeProxyConfiguration"),
        ("/metrics", lambda body: "kubeproxy_sync_proxy_rules_service_changes_total" in body),
        ("/metrics", lambda body: "\n# HELP apiserver_" not in body),
        ("/flagz", lambda body: body.startswith("\nkube-proxy flagz\n") and body.endswith("config=x\n")),
        ("/statusz", lambda body: "Paths: /configz /flagz /healthz /metrics /proxyMode /statusz\n" in body),
    ],
)
async def test_the_server_of_metrics(path: str, check: Callable[[str], Any]) -> None:
    status, _, body = await asked(MetricsHandler(Configuration().completed(), {"config": "x"}), path)
    assert status == 200
    assert check(body)


async def test_profiles_are_served_if_they_are_enabled() -> None:
    assert (await asked(MetricsHandler(Configuration(), {}), "/debug/pprof/"))[0] == 404
    assert (await asked(MetricsHandler(Configuration(enable_profiling=True), {}), "/debug/pprof/"))[0] == 200
