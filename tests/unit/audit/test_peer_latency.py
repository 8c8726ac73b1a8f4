"""Tests of the latencies of layers that the aggregator takes over from a peer service."""

from __future__ import annotations

from tetrapod.generic.audit.context import AuditContext
from tetrapod.generic.audit.policy import Auditing, Level
from tetrapod.generic.http.request import Request
from tetrapod.generic.storage.latency import add_store_latency


def test_the_time_of_the_store_is_added_and_that_of_other_layers_is_kept() -> None:
    request = Request("GET", "/api")
    context = AuditContext(request, Auditing(Level.METADATA, frozenset(), False), None, None)
    with context.measured_store():
        add_store_latency(1.0)
        context.add_peer_data({"layers": {"etcd": 2.0, "authentication": 3.0}})
        context.add_peer_data({"layers": {"authentication": 5.0}})
        add_store_latency(4.0)
    assert context.peer_data()["layers"] == {"etcd": 7.0, "authentication": 3.0}
