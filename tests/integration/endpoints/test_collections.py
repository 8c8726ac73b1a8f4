"""Lists, watches and deletions of collections, in all their formats."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from functools import partial

import orjson
import pytest

from integration.endpoints.serving import Api, Collector
from support.waiting import eventually
from tetrapod.generic.http.negotiation.accept import PROTOBUF

MAPS = "/api/v1/namespaces/n/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


async def fill(api: Api, *names: str, size: int = 1) -> None:
    for name in names:
        body = {"metadata": {"name": name, "labels": {"first": name[0]}}, "data": {"k": "v" * size}}
        assert (await api("POST", MAPS, body)).status == 201


async def test_items_of_built_in_lists_do_not_repeat_their_kind(api: Api) -> None:
    await fill(api, "a", "b")
    answer = (await api("GET", f"{MAPS}?labelSelector=first%3Da")).json
    assert (answer["kind"], answer["apiVersion"]) == ("ConfigMapList", "v1")
    assert [sorted(item) for item in answer["items"]] == [["data", "metadata"]]


async def test_a_large_list_is_streamed_completely(api: Api) -> None:
    names = [f"m{i:03}" for i in range(250)]
    await fill(api, *names, size=1000)
    answer = await api("GET", MAPS)
    assert [item["metadata"]["name"] for item in answer.json["items"]] == names


async def test_continue_tokens_lead_to_the_next_page(api: Api) -> None:
    await fill(api, "a", "b", "c")
    first = (await api("GET", f"{MAPS}?limit=2")).json
    assert first["metadata"]["remainingItemCount"] == 1
    rest = (await api("GET", f"{MAPS}?limit=2&continue={first['metadata']['continue']}")).json
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c"]


async def test_empty_lists_differ_by_format(api: Api) -> None:
    assert (await api("GET", MAPS)).json["items"] == []
    assert (await api("GET", MAPS, accept=PARTIAL_LIST)).json["items"] is None
    assert (await api("GET", MAPS, accept=TABLE)).json["rows"] is None


async def test_table_rows_include_the_requested_object_form(api: Api) -> None:
    await fill(api, "a")
    table = (await api("GET", MAPS, accept=TABLE)).json
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Created At"]
    assert table["rows"][0]["cells"][0] == "a"
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    whole = (await api("GET", f"{MAPS}/a?includeObject=Object", accept=TABLE)).json
    assert whole["rows"][0]["object"]["data"] == {"k": "v"}
    assert (await api("GET", f"{MAPS}?includeObject=None", accept=TABLE)).json["rows"][0]["object"] is None
    assert (await api("GET", f"{MAPS}?includeObject=All", accept=TABLE)).status == 400


async def test_media_types_for_lists_and_objects_are_separate(api: Api) -> None:
    await fill(api, "a")
    assert (
        (await api("GET", MAPS, accept=PARTIAL))
        .json["message"]
        .endswith("the requested object is a list (*core.ConfigMapList)")
    )
    assert (
        (await api("GET", f"{MAPS}/a", accept=PARTIAL_LIST)).json["message"].endswith("is not a list (*core.ConfigMap)")
    )


async def test_deletecollection_returns_the_deleted_objects(api: Api) -> None:
    await fill(api, "a", "b")
    answer = (await api("DELETE", f"{MAPS}?fieldSelector=metadata.name%3Da")).json
    assert [item["metadata"]["name"] for item in answer["items"]] == ["a"]
    assert [item["metadata"]["name"] for item in (await api("GET", MAPS)).json["items"]] == ["b"]


async def test_a_watch_delivers_events(api: Api) -> None:
    since = (await api("GET", MAPS)).json["metadata"]["resourceVersion"]
    async with api.watch(f"{MAPS}?watch=1&resourceVersion={since}") as watch:
        await fill(api, "a")
        await api("DELETE", f"{MAPS}/a")
        events = await watch.events(2)
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
        ("ADDED", "a"),
        ("DELETED", "a"),
    ]
    assert int(events[1]["object"]["metadata"]["resourceVersion"]) > int(
        events[0]["object"]["metadata"]["resourceVersion"]
    )


async def test_a_watch_list_ends_its_initial_events_with_a_bookmark(api: Api) -> None:
    await fill(api, "a")
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with api.watch(f"{MAPS}?{query}") as watch:
        added, bookmark = await watch.events(2)
    assert added["type"] == "ADDED"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_a_watch_without_version_but_with_bookmarks_is_a_watch_list(api: Api) -> None:
    await fill(api, "a")
    for query in ("watch=1&allowWatchBookmarks=true", "watch=1&allowWatchBookmarks=true&resourceVersion=0"):
        async with api.watch(f"{MAPS}?{query}") as watch:
            added, bookmark = await watch.events(2)
        assert added["type"] == "ADDED"
        assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_the_watch_path_accepts_the_options_of_a_list(api: Api) -> None:
    await fill(api, "a")
    path = "/api/v1/watch/namespaces/n/configmaps"
    for query in (
        "",
        "?watch=false",
        "?resourceVersion=0&resourceVersionMatch=NotOlderThan",
        "?allowWatchBookmarks=true&continue=x",
    ):
        async with api.watch(path + query) as watch:
            (added,) = await watch.events(1)
            await fill(api, added["object"]["metadata"]["name"] + "b")  # without a bookmark in between
            (next_,) = await watch.events(1)
            assert (added["type"], next_["type"]) == ("ADDED", "ADDED")
        assert (await api("DELETE", f"{MAPS}/ab")).status == 200
    assert (await api("GET", f"{path}?sendInitialEvents=true")).status == 422


async def test_a_watch_list_is_compressed_event_by_event(api: Api) -> None:
    await fill(api, "a", "b")
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    for form in ("application/json", TABLE, PROTOBUF):
        plain = await api.respond(await api.request("GET", f"{MAPS}?{query}", accept=form))
        assert b"content-encoding" not in dict(plain.headers)
        headers = {"accept": form, "accept_encoding": "deflate, gzip"}
        response = await api.respond(await api.request("GET", f"{MAPS}?{query}", **headers))
        assert (
            dict(response.headers)[b"content-encoding"] == b"gzip"
            and dict(response.headers)[b"vary"] == b"Accept-Encoding"
        )
        assert b"content-encoding" not in dict(
            (await api.respond(await api.request("GET", f"{MAPS}?watch=1", **headers))).headers
        )
        async with (
            api.watch(f"{MAPS}?{query}", accept=form) as plainly,
            api.watch(f"{MAPS}?{query}", **headers) as compressed,
        ):
            await eventually(partial(same, plainly, compressed))
            assert (
                await api("PATCH", f"{MAPS}/a", {"data": {"k": form}}, content_type="application/merge-patch+json")
            ).status == 200
            await eventually(partial(same, plainly, compressed, b"" if form == TABLE else form.encode()))


async def same(plain: Collector, compressed: Collector, holding: bytes = b"") -> bool:
    """Check that one is the compressed form of the other, and that after every write all data so far can be
    decompressed.

    It uses one gzip member without an end, because Go's reader holds the last bytes of a member back until the next one
    begins.
    """
    reader = zlib.decompressobj(31)
    unpacked = reader.decompress(compressed.data)
    assert not reader.eof
    return b"initial-events-end" in plain.data and holding in plain.data and unpacked == plain.data


async def test_a_compressed_watch_list_ends_with_a_complete_gzip_member(api: Api) -> None:
    await fill(api, "a")
    query = "watch=1&allowWatchBookmarks=true&timeoutSeconds=1"
    answer = await api("GET", f"{MAPS}?{query}", accept_encoding="gzip")
    assert b"initial-events-end" in gzip.decompress(answer.body)
    nothing = await api("GET", f"{MAPS}?{query}&fieldSelector=metadata.name%3Dnone", accept_encoding="gzip")
    assert b"initial-events-end" in gzip.decompress(nothing.body)


async def test_only_the_first_table_of_a_watch_has_columns(api: Api) -> None:
    await fill(api, "a", "b")
    async with api.watch(f"{MAPS}?watch=1&resourceVersion=0", accept=TABLE) as watch:
        events = await watch.events(2)
    assert [event["object"]["columnDefinitions"] is not None for event in events] == [True, False]


async def test_a_watch_ends_at_its_timeout(api: Api) -> None:
    async with asyncio.timeout(5):
        answer = await api("GET", f"{MAPS}?watch=1&timeoutSeconds=1")
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize("query", ["allowWatchBookmarks=true", "allowWatchBookmarks=false"])
async def test_a_watch_with_bookmarks_gets_a_last_one_before_its_timeout(
    api: Api, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    monkeypatch.setattr("tetrapod.generic.endpoints.watch_serving.LAST_BOOKMARK", 0.6)
    await fill(api, "a")
    version = (await api("GET", f"{MAPS}/a")).json["metadata"]["resourceVersion"]
    async with asyncio.timeout(5):
        answer = await api("GET", f"{MAPS}?watch=1&resourceVersion={version}&timeoutSeconds=1&{query}")
    events = [orjson.loads(line) for line in answer.body.splitlines()]
    assert [event["type"] for event in events] == (["BOOKMARK"] if query.endswith("true") else [])
    assert all(int(event["object"]["metadata"]["resourceVersion"]) >= int(version) for event in events)


async def test_a_watch_whose_timeout_is_too_short_gets_no_last_bookmark(api: Api) -> None:
    await fill(api, "a")
    version = (await api("GET", f"{MAPS}/a")).json["metadata"]["resourceVersion"]
    answer = await api("GET", f"{MAPS}?watch=1&resourceVersion={version}&timeoutSeconds=1&allowWatchBookmarks=true")
    assert answer.body == b""


async def test_yaml_cannot_be_watched(api: Api) -> None:
    assert (await api("GET", f"{MAPS}?watch=1", accept="application/yaml")).status == 406


async def test_an_object_can_be_watched_by_the_legacy_path(api: Api) -> None:
    await fill(api, "a", "b")
    async with api.watch("/api/v1/watch/namespaces/n/configmaps/b?resourceVersion=0") as watch:
        (event,) = await watch.events(1)
    assert event["object"]["metadata"]["name"] == "b"


async def test_an_invalid_resource_version_is_rejected_in_lists_only(api: Api) -> None:
    await fill(api, "a")
    text = 'resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax'
    listed = (await api("GET", f"{MAPS}?resourceVersion=x")).json
    assert (listed["code"], listed["reason"], listed["message"]) == (
        400,
        "BadRequest",
        f"invalid resource version: {text}",
    )
    for path in (f"{MAPS}?watch=1&resourceVersion=x", f"{MAPS}/a?resourceVersion=x"):
        answer = (await api("GET", path)).json
        assert (answer["code"], answer.get("reason"), answer["message"]) == (500, None, text)


async def test_pretty_json_has_no_trailing_newline(api: Api) -> None:
    await fill(api, "a")
    assert (await api("GET", f"{MAPS}/a")).body.endswith(b"}\n")
    for path in (MAPS, f"{MAPS}/a", f"{MAPS}/missing"):
        assert (await api("GET", f"{path}?pretty=true")).body.endswith(b"\n}")
