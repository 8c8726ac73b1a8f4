"""Tests of the aggregator's backends: state derived from an APIService is kept until the APIService is deleted, and not
longer.
"""

from __future__ import annotations

from tetrapod.aggregator.backends import Backends, ProxyCertificate
from tetrapod.generic.proxy import BackendPool
from tetrapod.generic.proxy.resolver import Resolver
from unit.aggregator.objects import FakeCluster, api_service


async def test_backend_state_is_kept_until_the_apiservice_is_deleted() -> None:
    cluster = FakeCluster()
    cluster.add({"port": 443})
    backends = Backends(BackendPool(), Resolver(cluster, by_endpoints=False), ProxyCertificate())
    obj = api_service("example.com", service={})
    endpoint, tls = backends.endpoint(obj), backends.tls(obj)
    assert backends.endpoint(obj) is endpoint
    assert backends.tls(obj) is tls
    backends.forget("v1.example.com")
    assert backends.tls(obj) is not tls
    assert backends.endpoint(obj) is not endpoint


async def test_connections_are_reused_if_the_address_does_not_change() -> None:
    cluster = FakeCluster()
    cluster.add({"port": 443})
    backends = Backends(BackendPool(), Resolver(cluster, by_endpoints=False), ProxyCertificate())
    endpoint = backends.endpoint(api_service("example.com", service={}))
    assert backends.endpoint(api_service("example.com", service={})) is endpoint
    elsewhere = api_service("example.com", service={})
    elsewhere["spec"]["insecureSkipTLSVerify"] = True
    changed = backends.endpoint(elsewhere)
    assert changed.tls is not None and changed.tls.insecure
