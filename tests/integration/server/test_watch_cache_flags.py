"""--watch-cache-sizes and --watch-cache: reads of a resource are answered by the store, as a kube-apiserver's are.

The expected answers are those of kube-apiserver 1.37.1 with `--watch-cache-sizes=configmaps#0`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.failing_starts import failed_start
from support.https_client import HttpsClient
from support.server import running
from support.service_accounts import wait_for_service_account

MAPS = "/api/v1/namespaces/uncached/configmaps"
SECRETS = "/api/v1/namespaces/uncached/secrets"
FUTURE = 99999999


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    with running(tmp_path_factory.mktemp("data"), "--watch-cache-sizes=configmaps#0,secrets#100") as server:
        client = HttpsClient(server.kubeconfig)
        client.call("POST", "/api/v1/namespaces", {"metadata": {"name": "uncached"}})
        client.until(lambda reply: len(reply.body["items"]) == 1, "GET", MAPS)  # kube-root-ca.crt
        for path in (MAPS, SECRETS):
            for number in range(3):
                assert client.call("POST", path, {"metadata": {"name": f"a{number}"}}).status == 201
        yield client


@pytest.mark.parametrize(("path", "count"), [(MAPS, 1), (SECRETS, 3)])
def test_a_limit_applies_to_resource_version_0_without_a_cache_only(client: HttpsClient, path: str, count: int) -> None:
    body = client.call("GET", f"{path}?resourceVersion=0&limit=1").body
    assert len(body["items"]) == count
    assert ("continue" in body["metadata"]) == (count == 1)


def test_events_are_read_from_the_store_by_default(client: HttpsClient) -> None:
    path = "/api/v1/namespaces/uncached/events"
    for name in ("a", "b"):
        event = {"metadata": {"name": name}, "involvedObject": {"namespace": "uncached"}}
        assert client.call("POST", path, event).status == 201
    for group in ("/api/v1", "/apis/events.k8s.io/v1"):
        body = client.call("GET", f"{group}/namespaces/uncached/events?resourceVersion=0&limit=1").body
        assert [item["metadata"]["name"] for item in body["items"]] == ["a"]
        assert body["metadata"]["remainingItemCount"] == 1
    reply = client.call("GET", f"{path}/a?resourceVersion={FUTURE}")
    assert (reply.status, "retryAfterSeconds" in reply.body["details"]) == (504, False)
    assert client.call("GET", f"{path}/a?resourceVersion=x").status == 400


def test_a_list_continues_page_by_page(client: HttpsClient) -> None:
    names, token = [], ""
    while True:
        body = client.call("GET", f"{MAPS}?limit=3&continue={token}").body
        names += [item["metadata"]["name"] for item in body["items"]]
        if not (token := body["metadata"].get("continue", "")):
            break
    assert names == ["a0", "a1", "a2", "kube-root-ca.crt"]


def test_reads_at_a_version(client: HttpsClient) -> None:
    version = client.call("GET", MAPS).body["metadata"]["resourceVersion"]
    for query in (f"resourceVersion={version}", f"resourceVersion={version}&resourceVersionMatch=Exact"):
        body = client.call("GET", f"{MAPS}?{query}").body
        assert (len(body["items"]), body["metadata"]["resourceVersion"] >= version) == (4, True)
    assert client.call("GET", f"{MAPS}/a1?resourceVersion={version}").status == 200
    assert client.call("GET", f"{MAPS}/a1?resourceVersion=0").status == 200
    assert client.call("GET", f"{MAPS}/nosuch?resourceVersion=0").status == 404


@pytest.mark.parametrize("path", [MAPS, f"{MAPS}/a1", f"{MAPS}?resourceVersionMatch=Exact"])
def test_a_version_of_the_future_is_too_large_at_once(client: HttpsClient, path: str) -> None:
    reply = client.call("GET", f"{path}{'&' if '?' in path else '?'}resourceVersion={FUTURE}")
    assert reply.status == 504
    assert reply.body["message"].startswith(f"Timeout: Too large resource version: {FUTURE}, current: ")
    assert reply.body["details"] == {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    }


def test_an_invalid_version_of_an_object_is_a_bad_request(client: HttpsClient) -> None:
    reply = client.call("GET", f"{MAPS}/a1?resourceVersion=x")
    assert (reply.status, reply.body["message"]) == (
        400,
        'invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax',
    )


def test_lists_are_counted_as_served_by_the_store(client: HttpsClient) -> None:
    assert client.call("GET", MAPS).status == client.call("GET", SECRETS).status == 200
    lines = client.call("GET", "/metrics").body.splitlines()
    lists = {line.partition(" ")[0] for line in lines if line.startswith("apiserver_storage_list_total{")}
    count = 'apiserver_storage_list_total{{group="",index="",resource="{}",storage="{}"}}'.format
    assert count("configmaps", "etcd") in lists
    assert count("configmaps", "watchcache") not in lists
    assert count("secrets", "watchcache") in lists


def test_without_watch_caches_everything_is_read_from_the_store(tmp_path: Path) -> None:
    with running(tmp_path, "--watch-cache=false") as server:
        client = HttpsClient(server.kubeconfig)
        assert client.call("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "a"}}).status == 201
        assert client.call("GET", "/api/v1/namespaces/default/secrets/a").status == 200
        wait_for_service_account(client.call)
        assert 'storage="watchcache"' not in client.call("GET", "/metrics").body


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("configmaps", "invalid value of watch cache size: configmaps"),
        ("configmaps#x", "invalid size of watch cache size: configmaps#x"),
        ("configmaps#-1", "watch cache size cannot be negative: configmaps#-1"),
    ],
)
def test_invalid_sizes_are_rejected(tmp_path: Path, value: str, error: str) -> None:
    assert error in failed_start(tmp_path, f"--watch-cache-sizes={value}").stderr
