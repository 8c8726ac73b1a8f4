"""The estimated work of lists: by the sizes of objects, or by their number without SizeBasedListCostEstimate.

The answers are compared with those of kube-apiserver too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from support.forms import SQLITE, STOCK, serving
from support.https_client import HttpsClient, created

OFF: Final = "--feature-gates=SizeBasedListCostEstimate=false"
PATH: Final = "/api/v1/namespaces/default/configmaps"
COUNT: Final = 250
SIZES: Final = "apiserver_resource_size_estimate_bytes"
SEATS: Final = re.compile(
    r'^apiserver_flowcontrol_work_estimated_seats_sum\{flow_schema="estimated",priority_level="workload-high"\} (\d+)',
    re.MULTILINE,
)
FLOW: Final = {
    "metadata": {"name": "estimated"},
    "spec": {
        "priorityLevelConfiguration": {"name": "workload-high"},
        "matchingPrecedence": 2,
        "rules": [
            {
                "subjects": [{"kind": "User", "user": {"name": "lister"}}],
                "resourceRules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "namespaces": ["*"]}],
            }
        ],
    },
}


def page(client: HttpsClient) -> str:
    return client.call("GET", "/metrics").message


def seats(client: HttpsClient) -> int:
    """Return the sum of the seats that the requests of the user `lister` were estimated to take."""
    found = SEATS.search(page(client))
    return int(found[1]) if found else 0


def estimated(client: HttpsClient, query: str) -> int:
    """Return the seats of one list of the user `lister`, who may list nothing."""
    former = seats(client)
    assert client.with_headers({"Impersonate-User": "lister"}).call("GET", f"{PATH}?{query}").status == 403
    return seats(client) - former


def filled(client: HttpsClient) -> None:
    """Create the objects and the flow schema, and wait until the server has counted the objects."""
    client.until(lambda reply: reply.status == 200, "GET", "/api/v1/namespaces/default", timeout=30)
    created(client, "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", FLOW)
    with ThreadPoolExecutor(8) as threads:
        bodies = [{"metadata": {"name": f"c{number}"}, "data": {"k": "v" * 1500}} for number in range(COUNT)]
        list(threads.map(lambda body: created(client, PATH, body), bodies))
    assert len(client.call("GET", PATH).body["items"]) >= COUNT
    client.until(lambda reply: _objects(reply.message) >= COUNT, "GET", "/metrics", timeout=90)
    client.until(lambda _: estimated(client, "resourceVersion=0") > 0, "GET", "/healthz", timeout=30)


def _objects(metrics: str) -> int:
    found = re.search(r'^apiserver_resource_objects\{group="",resource="configmaps"\} (\d+)', metrics, re.MULTILINE)
    return int(found[1]) if found else 0


def server(form: str, factory: pytest.TempPathFactory, *flags: str) -> Iterator[HttpsClient]:
    polling = ("--etcd-count-metric-poll-period=1s",) if form == STOCK else ()
    with serving(form, factory.mktemp("data"), *polling, *flags) as client:
        filled(client)
        yield client


@pytest.fixture(scope="module", params=[SQLITE, STOCK])
def counted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    yield from server(request.param, tmp_path_factory, OFF)


@pytest.fixture(scope="module", params=[SQLITE, STOCK])
def default(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    yield from server(request.param, tmp_path_factory)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", 3),
        ("resourceVersion=0", 3),
        ("limit=10", 3),
        ("resourceVersion=0&limit=10", 3),
        ("labelSelector=a", 3),
        ("fieldSelector=metadata.name%3Dc1", 1),
        ("limit=100&resourceVersion=1", 2),
        ("limit=100&resourceVersion=1&resourceVersionMatch=NotOlderThan", 3),
        ("resourceVersion=1&resourceVersionMatch=Exact", 6),
        ("limit=10&labelSelector=a&continue=x", 3),
        ("limit=200&labelSelector=a&continue=x", 5),
        ("limit=200&continue=x", 4),
    ],
)
def test_without_the_gate_the_number_of_objects_decides(counted: HttpsClient, query: str, expected: int) -> None:
    assert estimated(counted, query) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [("", 5), ("limit=100", 2), ("fieldSelector=metadata.name%3Dc1", 1), ("resourceVersion=0", 5)],
)
def test_with_the_gate_the_size_of_objects_decides(default: HttpsClient, query: str, expected: int) -> None:
    assert estimated(default, query) == expected


def test_sizes_are_measured_with_the_gate(default: HttpsClient) -> None:
    assert f'\n{SIZES}{{group="",resource="configmaps"}}' in page(default)


def test_sizes_are_not_measured_without_the_gate(counted: HttpsClient) -> None:
    assert 'apiserver_resource_objects{group="",resource="configmaps"}' in page(counted)
    assert f"\n{SIZES}{{" not in page(counted)
