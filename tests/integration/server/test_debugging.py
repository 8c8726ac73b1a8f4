"""Debug endpoints of a server: /statusz, /flagz, profiles, the log level, results of health checks."""

from __future__ import annotations

import asyncio
import logging
import marshal
import time

import orjson
import pytest

from integration.server.conftest import Call
from tetrapod.generic.http.request import Response
from tetrapod.generic.server.server import GenericAPIServer


def media_type(response: Response) -> str:
    return dict(response.headers)[b"content-type"].decode()


async def test_statusz_and_flagz_are_text_unless_their_full_media_type_is_asked_for(
    server: GenericAPIServer, call: Call
) -> None:
    server.flags = {"v": "2", "a": "1"}
    text = await call("GET", "/flagz")
    assert (media_type(text), text.body.endswith(b" only.\na=1\nv=2\n")) == ("text/plain; charset=utf-8", True)
    full = await call("GET", "/flagz", accept="application/json;v=v1beta1;g=config.k8s.io;as=Flagz")
    assert media_type(full) == "application/json;g=config.k8s.io;v=v1beta1;as=Flagz"
    assert orjson.loads(full.body)["flags"] == {"a": "1", "v": "2"}
    status = await call("GET", "/statusz", accept="application/yaml;v=v1beta1;g=config.k8s.io;as=Statusz")
    lines = (await call("GET", "/statusz")).body.decode().splitlines()
    assert time.strptime(
        next(line for line in lines if line.startswith("Started: ")), "Started: %a %b %d %H:%M:%S UTC %Y"
    )
    assert b"/readyz" in status.body and media_type(status).startswith("application/yaml;")


@pytest.mark.parametrize(
    "accept", ["application/json", "text/html", "application/json;v=v1;g=config.k8s.io;as=Statusz"]
)
async def test_other_media_types_of_statusz_are_not_acceptable(call: Call, accept: str) -> None:
    assert (await call("GET", "/statusz", accept=accept)).status == 406


@pytest.mark.parametrize(
    "accept",
    ["text/html", "application/vnd.kubernetes.protobuf", "application/yaml;v=v1beta1;g=config.k8s.io;as=Flagz"],
)
async def test_statusz_rejects_unsupported_media_types(call: Call, accept: str) -> None:
    rejected = await call("GET", "/statusz", accept=accept)
    assert (media_type(rejected), rejected.body[:4]) == ("application/json", b"{\n  ")


@pytest.mark.parametrize("path", ["/api", "/apis", "/statusz"])
async def test_documents_are_indented_for_curl(call: Call, path: str) -> None:
    accept = "application/json;v=v1beta1;g=config.k8s.io;as=Statusz" if path == "/statusz" else "*/*"
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    for form in {accept, accept if path == "/statusz" else aggregated}:
        assert (await call("GET", path, accept=form)).body.startswith(b'{"kind"')
        assert (await call("GET", path, accept=form, agent="curl/8.0")).body.startswith(b'{\n  "kind"')
        assert (await call("GET", f"{path}?pretty=false", accept=form, agent="curl/8.0")).body.startswith(b'{"kind"')


async def test_an_old_version_of_statusz_warns(call: Call) -> None:
    warnings: list[str] = []
    await call("GET", "/statusz", accept="application/json;v=v1alpha1;g=config.k8s.io;as=Statusz", warnings=warnings)
    assert warnings == ["This version of the statusz endpoint is deprecated. Please use a newer version."]


async def test_profiles_say_what_the_process_does(call: Call) -> None:
    assert (await call("GET", "/debug/pprof/nope")).status == 404
    assert b"task " in (await call("GET", "/debug/pprof/goroutine?debug=1")).body
    assert b"builtins.dict" in (await call("GET", "/debug/pprof/heap")).body
    assert b"size=" in (await call("GET", "/debug/pprof/heap?seconds=0.01")).body
    assert b"size=" in (await call("GET", "/debug/pprof/allocs?seconds=0.01")).body
    assert b"thread MainThread" in (await call("GET", "/debug/pprof/threadcreate?debug=1")).body
    profile = await call("GET", "/debug/pprof/profile?seconds=0.01")
    assert any("sleep" in function for _, _, function in marshal.loads(profile.body))


async def test_a_profile_trace_has_the_calls_of_each_thread(call: Call) -> None:
    answer = await call("GET", "/debug/pprof/trace?seconds=0.05")
    assert dict(answer.headers)[b"content-disposition"] == b'attachment; filename="trace"'
    events = orjson.loads(answer.body)["traceEvents"]
    ran = [event for event in events if event["ph"] == "X"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    main = [event for event in ran if names[event["tid"]] == "MainThread"]
    assert any("run_until_complete" in event["name"] or "_run" in event["name"] for event in main)
    assert all(event["ts"] >= 0 and event["dur"] >= 0 for event in ran)


async def test_an_address_of_a_stack_or_log_line_is_named(call: Call) -> None:
    task = asyncio.current_task()
    asked = f"{id(media_type):#x}+{id(task)}+0x1+nonsense+{id(GenericAPIServer):#x}"
    lines = (await call("GET", f"/debug/pprof/symbol?{asked}")).body.decode().splitlines()
    assert lines[0] == "num_symbols: 1"
    assert lines[1] == f"{id(media_type):#x} {__name__}.media_type"
    assert lines[2].startswith(f"{id(task):#x} task ")
    assert lines[3:] == [f"{id(GenericAPIServer):#x} tetrapod.generic.server.server.GenericAPIServer"]
    assert (
        await call("POST", "/debug/pprof/symbol", f"{id(media_type)}".encode())
    ).body.decode().splitlines() == lines[:2]


async def test_the_log_level_changes_while_the_server_runs(call: Call) -> None:
    root, access = logging.getLogger(), logging.getLogger("tetrapod.access")
    before = root.level, access.level
    try:
        assert (await call("PUT", "/debug/flags/v", b"4")).body == b"successfully set klog.logging.verbosity to 4\n"
        assert (root.level, access.level) == (logging.DEBUG, logging.INFO)
        for bad, why in (
            (b"abc", 'strconv.ParseUint: parsing "abc": invalid syntax'),
            (b"-1", 'strconv.ParseUint: parsing "-1": invalid syntax'),
            (b"", 'strconv.ParseUint: parsing "": invalid syntax'),
            (b"99999999999", 'strconv.ParseUint: parsing "99999999999": value out of range'),
            (
                b"2147483648",
                (
                    "failed set klog.logging.verbosity 2147483648: strconv.ParseInt: parsing "
                    '"2147483648": value out of range'
                ),
            ),
        ):
            answer = await call("PUT", "/debug/flags/v", bad)
            assert (answer.status, answer.body.decode()) == (400, f"{why}\n")
        assert root.level == logging.DEBUG
    finally:
        root.setLevel(before[0])
        access.setLevel(before[1])


async def test_outcomes_of_health_checks_are_counted(server: GenericAPIServer, call: Call) -> None:
    async def broken() -> None:
        raise RuntimeError("down")

    server.lifecycle.add_check("store", broken, ("readyz",))
    assert (await call("GET", "/livez")).status == 200
    rejected = await call("GET", "/readyz?verbose")
    assert (rejected.status, b"[-]store failed: reason withheld\n" in rejected.body) == (500, True)
    found = (await call("GET", "/metrics/slis")).body
    assert b'kubernetes_healthcheck{name="store",type="readyz"} 0' in found
    assert b'kubernetes_healthcheck{name="ping",type="livez"} 1' in found
    assert b'kubernetes_healthchecks_total{name="store",status="error",type="readyz"}' in found
    assert (await call("DELETE", "/metrics/slis")).body == b"metrics reset\n"
    assert b"kubernetes_healthcheck" not in (await call("GET", "/metrics/slis")).body
    assert (await call("GET", "/livez/ping")).status == 200
    found = (await call("GET", "/metrics/slis")).body
    assert b"# TYPE kubernetes_healthcheck gauge\nkubernetes_healthcheck{" in found


async def test_the_root_lists_what_is_served_and_not_what_is_for_debugging(call: Call) -> None:
    paths = orjson.loads((await call("GET", "/")).body)["paths"]
    assert {"/healthz/ping", "/metrics/slis", "/statusz", "/version"} <= set(paths)
    assert not [path for path in paths if path.startswith("/debug")]


async def test_metrics_are_protobuf_if_preferred(call: Call) -> None:
    message = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily"
    for path in ("/metrics", "/metrics/slis"):
        answer = await call("GET", path, accept=f"{message};encoding=compact-text;q=0.6,text/plain;q=0.5")
        headers = dict(answer.headers)
        assert headers[b"content-type"].startswith(
            b"application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=compact"
        )
        assert abs(int(headers[b"process-start-time-unix"]) - time.time()) < 10_000
        assert b'name: "process_start_time_seconds"' in answer.body
