"""`shardSelector` of lists, watches and collection deletes (ShardedListAndWatch), also of kube-apiserver."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest

from support.definitions import definition
from support.forms import FORMS, SQLITE, STOCK, serving
from support.https_client import MERGE, HttpsClient, Reply

GATE: Final = "--feature-gates=ShardedListAndWatch=true"
MAPS: Final = "/api/v1/namespaces/shards/configmaps"
ALL_MAPS: Final = "/api/v1/configmaps"
WIDGETS: Final = "/apis/example.com/v1/namespaces/shards/widgets"
ALL_WIDGETS: Final = "/apis/example.com/v1/widgets"
OBJECTS: Final = 12
HALF: Final = "0x8000000000000000"
LOW: Final = f"shardRange(object.metadata.uid, '0x0000000000000000', '{HALF}')"
HIGH: Final = f"shardRange(object.metadata.uid, '{HALF}', '0x10000000000000000')"
TABLE: Final = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
PARTIAL: Final = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
BAD: Final = {
    " ": "empty shard selector is not allowed; omit the parameter for unfiltered lists",
    "x": "unexpected expression kind 3; expected shardRange() call or || operator",
    "shardRange(object.metadata.uid, '0x0', '0x8000000000000000')": (
        'hexStart must be a 0x-prefixed 16-digit hex value, got "0x0" (did you mean "0x0000000000000000"?)'
    ),
    "shardRange(object.metadata.name, '0x0000000000000000', '0x8000000000000000')": (
        'unsupported field path "object.metadata.name"; supported: object.metadata.uid, object.metadata.namespace'
    ),
    "shardRange(object.metadata.uid, '0x8000000000000000', '0x0000000000000000')": (
        "shard range start 0x8000000000000000 must be less than end 0x0000000000000000"
    ),
    "shardRange(object.metadata.uid, '0x8000000000000000', '0x20000000000000000')": (
        "hexEnd: 17-digit hex value must be '0x10000000000000000' (2^64), got \"0x20000000000000000\""
    ),
    "shardRange(object.metadata.uid, '0x800000000000000G', '0x8000000000000000')": (
        'hexStart: invalid hex character "G" in "0x800000000000000G"'
    ),
    "shardRange(object.metadata.uid, '8000000000000000', '0x8000000000000000')": (
        "hexStart must have '0x' prefix, got \"8000000000000000\""
    ),
    "shardRange(object.metadata.uid, '0x', '0x8000000000000000')": "hexStart: hex value is required after '0x'",
    "shardRange(object.metadata.uid, 0, 8)": "hexStart must be a string literal, got int64",
    "shardRange(object.metadata.uid, null, 8)": "hexStart must be a string literal, got structpb.NullValue",
    "shardRange(object.metadata.uid, b'a', 8)": "hexStart must be a string literal, got []uint8",
    "shardRange(object.metadata.uid, object, 8)": (
        "hexStart must be a string literal (e.g. '0xff'), got expression kind 3"
    ),
    "shardRange(object.metadata.uid[0], '0x0', '0x8')": (
        "shardRange() first argument: expected field path (e.g. object.metadata.uid), got expression kind 1"
    ),
    "shardRange(object.metadata.uid, '0x0')": "shardRange() requires exactly 3 arguments, got 2",
    "other(object.metadata.uid)": 'unsupported function "other"; only shardRange() and || are allowed',
    "[1].all(x, x)": 'unsupported function "all"; only shardRange() and || are allowed',
    "has(object.metadata)": 'unsupported function "has"; only shardRange() and || are allowed',
    "object.metadata.uid > '0x0'": 'unsupported function "_>_"; only shardRange() and || are allowed',
    "object.?metadata": "CEL parse error: unsupported syntax '.?'",
    "object.`metadata`": "unexpected expression kind 7; expected shardRange() call or || operator",
    "[?object]": "CEL parse error: unsupported syntax '?'",
    "shardRange(object.metadata.uid, '0x0'": "CEL parse error: Syntax error: missing ')' at '<EOF>'",
    "shardRange(package, '0x0')": "CEL parse error: reserved identifier: package",
    "has(object.in)": "CEL parse error: Syntax error: no viable alternative at input '.in'",
    f"{LOW} && {HIGH}": 'unsupported function "_&&_"; only shardRange() and || are allowed',
    f"{LOW} || {HIGH.replace('uid', 'namespace')}": (
        'all shard ranges must use the same field, got "object.metadata.uid" and "object.metadata.namespace"'
    ),
}


@pytest.fixture(scope="module", params=FORMS)
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    with serving(request.param, tmp_path_factory.mktemp("data"), GATE) as client:
        prepare(client)
        yield client


def prepare(client: HttpsClient) -> None:
    for name in ("shards", "alpha", "beta", "gamma", "kappa"):
        reply = client.until(
            lambda reply: reply.status == 201, "POST", "/api/v1/namespaces", {"metadata": {"name": name}}
        )
        assert reply.status == 201
        body = {"metadata": {"name": "one", "labels": {"part": "one"}}}
        assert client.call("POST", f"/api/v1/namespaces/{name}/configmaps", body).status == 201
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert client.call("POST", definitions, definition("example.com", "Widget")).status == 201
    client.until(lambda reply: reply.status == 200, "GET", ALL_WIDGETS, timeout=30)
    for number in range(OBJECTS):
        metadata = {"name": f"o{number:02}", "labels": {"part": "many", "even": str(number % 2 == 0)}}
        kind = {"apiVersion": "example.com/v1", "kind": "Widget"}
        assert client.call("POST", MAPS, {"metadata": metadata}).status == 201
        assert client.call("POST", WIDGETS, {**kind, "metadata": metadata}).status == 201


def fnv1a(value: str) -> int:
    hashed = 0xCBF29CE484222325
    for byte in value.encode():
        hashed = ((hashed ^ byte) * 0x100000001B3) % 2**64
    return hashed


def is_low(value: str) -> bool:
    return fnv1a(value) < 1 << 63


def listed(client: HttpsClient, path: str, selector: str, query: str = "") -> Any:
    reply = client.call("GET", f"{path}?labelSelector=part%3Dmany&shardSelector={quote(selector)}{query}")
    assert reply.status == 200, reply.body
    return reply.body


def names(body: Any) -> list[str]:
    return [item["metadata"]["name"] for item in body["items"]]


def expected(client: HttpsClient, path: str, *, low: bool) -> list[str]:
    items = client.call("GET", f"{path}?labelSelector=part%3Dmany").body["items"]
    assert len(items) == OBJECTS
    return [item["metadata"]["name"] for item in items if is_low(item["metadata"]["uid"]) == low]


@pytest.mark.parametrize("path", [MAPS, WIDGETS])
@pytest.mark.parametrize("query", ["", "&resourceVersion=0", "&resourceVersion=1&resourceVersionMatch=NotOlderThan"])
def test_each_object_is_in_one_shard(client: HttpsClient, path: str, query: str) -> None:
    low, high = listed(client, path, LOW, query), listed(client, path, HIGH, query)
    assert names(low) == expected(client, path, low=True)
    assert names(high) == expected(client, path, low=False)
    shown = {"selector": LOW} if path == MAPS else None  # upstream's untyped lists cannot show it
    assert low["metadata"].get("shardInfo") == shown


@pytest.mark.parametrize("path", [MAPS, WIDGETS])
def test_pages_have_the_objects_of_the_shard_only(client: HttpsClient, path: str) -> None:
    found, token, version = [], "", ""
    while True:
        page = listed(client, path, HIGH, f"&limit=2&continue={token}")
        assert len(page["items"]) <= 2
        assert "remainingItemCount" not in page["metadata"]
        assert version in ("", page["metadata"]["resourceVersion"])
        version = page["metadata"]["resourceVersion"]
        found += names(page)
        if not (token := page["metadata"].get("continue", "")):
            break
    assert found == expected(client, path, low=False)


@pytest.mark.parametrize("path", [MAPS, WIDGETS])
def test_a_list_at_a_former_version_is_filtered(client: HttpsClient, path: str) -> None:
    former = listed(client, path, LOW)
    version = former["metadata"]["resourceVersion"]
    assert client.call("PATCH", f"{path}/o00", {"metadata": {"annotations": {"a": "b"}}}, MERGE).status == 200
    exact = listed(client, path, LOW, f"&resourceVersion={version}&resourceVersionMatch=Exact")
    assert (names(exact), exact["metadata"]["resourceVersion"]) == (names(former), version)


def test_ranges_are_joined_and_their_text_is_normalized(client: HttpsClient) -> None:
    body = listed(client, MAPS, f"  {LOW.replace(', ', ',')}||({HIGH})  ")
    assert len(body["items"]) == OBJECTS
    assert body["metadata"]["shardInfo"] == {"selector": f"{LOW} || {HIGH}"}
    quarter = "shardRange(object.metadata.uid, '0x4000000000000000', '0x8000000000000000')"
    items = listed(client, MAPS, quarter)["items"]
    assert all(1 << 62 <= fnv1a(item["metadata"]["uid"]) < 1 << 63 for item in items)


def test_namespaces_are_shards_too(client: HttpsClient) -> None:
    selector = LOW.replace("uid", "namespace")
    body = client.call("GET", f"{ALL_MAPS}?labelSelector=part%3Done&shardSelector={quote(selector)}").body
    everything = client.call("GET", f"{ALL_MAPS}?labelSelector=part%3Done").body
    assert len(everything["items"]) == 5
    in_shard = [i["metadata"]["uid"] for i in everything["items"] if is_low(i["metadata"]["namespace"])]
    assert [item["metadata"]["uid"] for item in body["items"]] == in_shard
    assert 0 < len(in_shard) < 5
    names_of_namespaces = client.call("GET", f"/api/v1/namespaces?shardSelector={quote(selector)}").body
    assert names_of_namespaces["items"] == []  # the hash of the empty namespace is in the upper half


def test_a_single_object_is_filtered(client: HttpsClient) -> None:
    uid = client.call("GET", f"{MAPS}/o01").body["metadata"]["uid"]
    inside, outside = (LOW, HIGH) if is_low(uid) else (HIGH, LOW)
    field = "&fieldSelector=metadata.name%3Do01"
    assert names(listed(client, MAPS, inside, field)) == ["o01"]
    assert names(listed(client, MAPS, outside, field)) == []


@pytest.mark.parametrize("path", [MAPS, WIDGETS])
def test_other_forms_of_lists_have_no_shard_info(client: HttpsClient, path: str) -> None:
    count = len(expected(client, path, low=True))
    table = client.with_headers(TABLE).call("GET", f"{path}?labelSelector=part%3Dmany&shardSelector={quote(LOW)}").body
    partial = client.with_headers(PARTIAL).call("GET", f"{path}?labelSelector=part%3Dmany&shardSelector={quote(LOW)}")
    rows = table["rows"] or []  # null if every UID has its hash in the upper half
    assert (len(rows), len(partial.body["items"])) == (count, count)
    for body in (table, partial.body):
        assert "shardInfo" not in body["metadata"]


@pytest.mark.parametrize("path", [MAPS, WIDGETS])
@pytest.mark.parametrize(("selector", "text"), BAD.items())
def test_an_invalid_selector_is_an_error(client: HttpsClient, path: str, selector: str, text: str) -> None:
    error = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 500}
    for method, query in (("GET", ""), ("GET", "&watch=1"), ("DELETE", "")):
        reply = client.call(method, f"{path}?shardSelector={quote(selector)}{query}")
        assert reply == Reply(500, {**error, "message": f"invalid shard selector: {text}"}, [])
    reply = client.call("GET", f"{path}?shardSelector={quote(selector)}&resourceVersionMatch=Exact")
    assert reply.status == 422


def test_an_empty_selector_selects_everything(client: HttpsClient) -> None:
    body = listed(client, MAPS, "")
    assert (len(body["items"]), "shardInfo" in body["metadata"]) == (OBJECTS, False)


class Events:
    """The events of a watch, until its timeout."""

    def __init__(self, client: HttpsClient, path: str, selector: str, query: str) -> None:
        self.lines = client.lines(f"{path}?watch=1&shardSelector={quote(selector)}&{query}")

    def until(self, name: str) -> list[tuple[str, str]]:
        found = []
        for line in self.lines:
            event = json.loads(line)
            metadata = event["object"]["metadata"]
            found.append((event["type"], metadata.get("name", "")))
            if found[-1] == ("DELETED", name) or (not name and event["type"] == "BOOKMARK"):
                return found
        raise AssertionError(f"the watch ended after {found}")


@pytest.mark.parametrize("path", [MAPS, WIDGETS])
def test_a_watch_has_the_events_of_its_shard(client: HttpsClient, path: str) -> None:
    version = client.call("GET", path).body["metadata"]["resourceVersion"]
    query = f"resourceVersion={version}&timeoutSeconds=20"
    watches = {low: Events(client, path, LOW if low else HIGH, query) for low in (True, False)}
    kind = {"apiVersion": "example.com/v1", "kind": "Widget"} if path == WIDGETS else {}
    wanted: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    last = {}
    for number in range(50):
        name = f"w{number}"
        body = client.call("POST", path, {**kind, "metadata": {"name": name}}).body
        low = is_low(body["metadata"]["uid"])
        assert client.call("PATCH", f"{path}/{name}", {"metadata": {"labels": {"a": "b"}}}, MERGE).status == 200
        assert client.call("DELETE", f"{path}/{name}").status == 200
        wanted[low] += [("ADDED", name), ("MODIFIED", name), ("DELETED", name)]
        last[low] = name
        if len(last) == 2 and number > 3:
            break
    assert {low: watch.until(last[low]) for low, watch in watches.items()} == wanted


@pytest.mark.parametrize("path", [MAPS, WIDGETS])
def test_initial_events_are_filtered_and_followed_by_their_bookmark(client: HttpsClient, path: str) -> None:
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=20"
    events = Events(client, path, LOW, f"{query}&labelSelector=part%3Dmany").until("")
    added = sorted(name for kind, name in events[:-1] if kind == "ADDED")
    assert added == expected(client, path, low=True)
    assert [kind for kind, _ in events] == ["ADDED"] * len(added) + ["BOOKMARK"]


def metric(client: HttpsClient, name: str, resource: str) -> float | None:
    page = client.call("GET", "/metrics").message
    found = re.search(rf'^{name}{{group="[^"]*",resource="{resource}"}} (\S+)$', page, re.MULTILINE)
    return float(found[1]) if found else None


@pytest.mark.parametrize("resource", ["secrets", "endpoints"])
def test_watches_of_shards_are_counted(client: HttpsClient, resource: str, request: pytest.FixtureRequest) -> None:
    path = f"/api/v1/namespaces/shards/{resource}"
    version = client.call("GET", path).body["metadata"]["resourceVersion"]
    nothing = "shardRange(object.metadata.uid, '0x0000000000000000', '0x0000000000000001')"
    lines = client.lines(f"{path}?watch=1&shardSelector={quote(nothing)}&resourceVersion={version}&timeoutSeconds=20")
    gauge, counter = "apiserver_watch_shards_total", "apiserver_watch_filtered_events_total"
    assert metric(client, gauge, resource) == 1
    assert client.call("POST", path, {"metadata": {"name": "s"}}).status == 201
    assert client.call("PATCH", f"{path}/s", {"metadata": {"labels": {"a": "b"}}}, MERGE).status == 200
    assert client.call("DELETE", f"{path}/s").status == 200
    client.until(lambda _: metric(client, counter, resource) == 4, "GET", "/version")
    lines.close()
    closed = -1 if request.node.callspec.params["client"] == STOCK else 0  # upstream counts the end twice
    client.until(lambda _: metric(client, gauge, resource) == closed, "GET", "/version", timeout=30)


@pytest.mark.parametrize("path", [MAPS, WIDGETS])
def test_a_collection_delete_deletes_the_objects_of_its_shard_only(client: HttpsClient, path: str) -> None:
    kind = {"apiVersion": "example.com/v1", "kind": "Widget"} if path == WIDGETS else {}
    query = "labelSelector=part%3Dgone"
    for number in range(OBJECTS):
        body = {**kind, "metadata": {"name": f"d{number:02}", "labels": {"part": "gone"}}}
        assert client.call("POST", path, body).status == 201
    items = client.call("GET", f"{path}?{query}").body["items"]
    kept = [item["metadata"]["name"] for item in items if not is_low(item["metadata"]["uid"])]
    reply = client.call("DELETE", f"{path}?{query}&shardSelector={quote(LOW)}")
    assert (reply.status, len(reply.body["items"])) == (200, OBJECTS - len(kept))
    assert ("shardInfo" in reply.body["metadata"]) == (path == MAPS)
    assert names(client.call("GET", f"{path}?{query}").body) == kept
    assert client.call("DELETE", f"{path}?{query}").status == 200


@pytest.mark.parametrize("form", [SQLITE, STOCK])
def test_without_the_gate_shard_selectors_are_ignored(tmp_path: Path, form: str) -> None:
    with serving(form, tmp_path) as client:
        for selector in (LOW, " "):
            body = client.call("GET", f"/api/v1/namespaces?shardSelector={quote(selector)}").body
            assert "default" in names(body)
            assert "shardInfo" not in body["metadata"]
        reply = client.call("GET", f"/api/v1/namespaces?watch=1&timeoutSeconds=1&shardSelector={quote(' ')}")
        assert reply.status == 200
        assert "apiserver_watch_shards_total{" not in client.call("GET", "/metrics").message
