"""The metrics of all workers are at each of them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from integration.workers.worker_server import COUNT, WorkerServer, value_of, worker_server
from support.waiting import until
from support.wire import Client

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

SECRETS = "/api/v1/namespaces/default/secrets"
LISTS = (
    'apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="secrets",'
    'scope="namespace",subresource="",verb="LIST",version="v1"}'
)
DURATIONS = (
    'apiserver_request_duration_seconds_count{component="apiserver",dry_run="",group="",resource="secrets",'
    'scope="namespace",subresource="",verb="LIST",version="v1"}'
)
LEADS = 'leader_election_master_status{name="tetrapod-core"}'
PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=compact-text"


def seats(page: str) -> float:
    """Return the sum of the concurrency limits of all priority levels."""
    prefix = "apiserver_flowcontrol_nominal_limit_seats{"
    return sum(float(line.split()[-1]) for line in page.splitlines() if line.startswith(prefix))


def list_secrets(client: Client, times: int) -> None:
    for _ in range(times):
        assert client("GET", SECRETS).status == 200


def test_metrics_are_the_sum_of_all_workers(server: WorkerServer) -> None:
    with server.client_of_each() as (one, other):
        until(lambda: server.value(LEADS, one))
        before = server.value(LISTS, one)
        list_secrets(one, 2)
        list_secrets(other, 3)
        pages = [server.metrics(client) for client in (one, other)]
        assert [value_of(page, LISTS) - before for page in pages] == [5, 5]
        assert [value_of(page, DURATIONS) - before for page in pages] == [5, 5]
        assert [value_of(page, "tetrapod_workers") for page in pages] == [COUNT] * 2
        # both have a cache of the same objects, and one of them leads
        resource = 'apiserver_resource_objects{group="",resource="namespaces"}'
        assert [value_of(page, resource) for page in pages] == [4, 4]
        assert [value_of(page, LEADS) for page in pages] == [1, 1]
        protobuf = one("GET", "/metrics", headers={"Accept": PROTOBUF}).body.decode()
        assert 'name: "apiserver_request_total"' in protobuf
        assert "positive_delta" in protobuf
        slis = other("GET", "/metrics/slis").body.decode()
        assert "process_start_time_seconds" in slis


def test_concurrency_limit_is_divided_among_workers(tmp_path: Path, server: WorkerServer) -> None:
    with worker_server(tmp_path, workers=1) as single:
        one_process = seats(single.metrics())
    levels = 8
    assert one_process <= seats(server.metrics()) <= one_process + COUNT * levels  # shares are rounded up


def test_reset_applies_to_all_workers(server: WorkerServer) -> None:
    with server.client_of_each() as (one, other):
        list_secrets(one, 1)
        list_secrets(other, 1)
        assert server.value(LISTS, one) >= 2
        assert one("DELETE", "/metrics").status == 200
        assert server.value(LISTS, other) == 0


def test_counters_do_not_decrease_when_a_worker_is_replaced(server: WorkerServer) -> None:
    with server.client_of_each() as (one, other):
        list_secrets(one, 4)
        list_secrets(other, 4)
        counted = server.value(LISTS, one)
    for killed in server.pids():
        os.kill(killed, signal.SIGKILL)
        server.wait_for_replacement(killed)
        assert server.value(LISTS) == counted


def test_page_of_an_answering_worker_includes_the_counters_of_a_blocked_one(server: WorkerServer) -> None:
    with server.client_of_each() as (one, other):
        list_secrets(one, 1)
        list_secrets(other, 1)
        counted = server.value(LISTS, one)
        blocked = server.pids()[0]  # the worker of the first client
        os.kill(blocked, signal.SIGSTOP)
        try:
            page = server.metrics(other)
        finally:
            os.kill(blocked, signal.SIGCONT)
        assert value_of(page, LISTS) == counted
        assert value_of(page, "tetrapod_workers") == 1
