"""Consistent lists that the watch cache cannot serve in time: from the store, or as 429 behind a gate.

The answers are compared with those of kube-apiserver too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from support.etcd import running_etcd
from support.forms import ETCD, STOCK, serving_over
from support.held_watches import HeldWatches
from support.https_client import HttpsClient, created

GATE: Final = "ConsistentListFromCacheSkipTimeoutFallback"
PATH: Final = "/api/v1/namespaces/default/podtemplates"
TEXT: Final = r"Timeout: Too large resource version: (\d+), current: (\d+)"
COUNTS: Final = re.compile(
    r'^apiserver_watch_cache_consistent_read_total\{fallback="(\w+)",group="",resource="podtemplates",'
    r'success="(\w+)"\} (\d+)',
    re.MULTILINE,
)


def counts(client: HttpsClient) -> dict[tuple[str, str], int]:
    """Return the consistent reads of PodTemplates by the labels fallback and success, without those from the cache."""
    found = COUNTS.findall(client.call("GET", "/metrics").message)
    return {(fallback, success): int(count) for fallback, success, count in found if fallback != "false"}


def template(name: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    return {"metadata": {"name": name}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": spec}}


@pytest.fixture(params=[ETCD, STOCK])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def watches(tmp_path: Path) -> Iterator[HeldWatches]:
    with running_etcd(tmp_path / "etcd") as etcd:
        held = HeldWatches(etcd.url)
        with held.running():
            yield held


@pytest.mark.parametrize("enabled", [False, True])
def test_a_list_is_read_from_the_store_or_rejected(
    tmp_path: Path, form: str, watches: HeldWatches, enabled: bool
) -> None:
    gates = (f"--feature-gates={GATE}=true",) if enabled else ()
    no_controllers = ("--controllers=-*",) if form == ETCD else ()  # they list too
    with serving_over(watches, form, tmp_path / "server", *gates, *no_controllers) as client:
        client.until(lambda reply: reply.status == 200, "GET", "/api/v1/namespaces/default", timeout=30)
        created(client, PATH, template("a"))
        assert len(client.call("GET", PATH).body["items"]) >= 1  # the cache is filled
        assert counts(client) == {}
        watches.hold()
        version = int(created(client, PATH, template("b"))["metadata"]["resourceVersion"])
        reply = client.call("GET", PATH)
        one = client.call("GET", f"{PATH}?limit=1")
        assert client.call("GET", f"{PATH}/b").status == 200
        watches.release()
        if not enabled:
            assert "b" in [item["metadata"]["name"] for item in reply.body["items"]]
            assert len(one.body["items"]) == 1
            assert counts(client) == {("true", "true"): 2}
            return
        for rejected in (reply, one):
            assert (rejected.status, rejected.body["reason"]) == (429, "TooManyRequests")
            assert rejected.body["details"] == {"retryAfterSeconds": 1}
            match = re.fullmatch(TEXT, rejected.message)
            assert match is not None, rejected
            wanted, reached = map(int, match.groups())
            assert wanted >= version > reached
        assert counts(client) == {("skipped", "false"): 2}
        client.until(lambda reply: reply.status == 200, "GET", PATH)
