"""With four separate services, a request has one trace: of the aggregator, of the service behind it, and of etcd."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from integration.tracing.conftest import CONFIG_MAPS, TOKENS, ask, names, step, traced, tracing_file
from support.otlp import Collector, ReceivedSpan
from support.services import NAMES, Services, running_services


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[Services]:
    directory = tmp_path_factory.mktemp("four")
    flags: dict[str, tuple[str, ...]] = {
        name: ("--tracing-config-file", tracing_file(directory, collector)) for name in NAMES
    }
    flags["aggregator"] = (
        "--tracing-config-file",
        tracing_file(_made(directory / "all"), collector, 1_000_000),
        "-v",
        "3",
    )
    flags["aggregator"] += ("--logging-format", "json")
    flags["core"] += ("-v", "3", "--logging-format", "json")
    flags["auth"] += ("--token-auth-file", str(TOKENS))
    with running_services(directory, **flags) as services:
        yield services


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


def test_the_trace_of_the_aggregator_contains_that_of_core(four: Services) -> None:
    report = traced(four.url, CONFIG_MAPS, {"metadata": {"name": "a"}})
    behind = step(report, "service core")
    assert behind["spans"][0]["name"] == "HTTP POST"
    below = names({"spans": behind["spans"]})
    assert "Create" in below and "etcdserverpb.KV/Txn" in below and "authentication" in below
    assert report["response"]["status"] == 201
    assert not [header for header in report["response"]["headers"] if header.startswith("x-remote")]
    for path, service in (
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", "auth"),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "extensions"),
    ):
        assert "cacher.GetList" in names({"spans": step(traced(four.url, path), f"service {service}")["spans"]})


def test_a_client_cannot_request_spans_from_a_service(four: Services) -> None:
    status, headers, _ = ask(four.url, CONFIG_MAPS, x_remote_trace="tell", x_remote_user="admin")
    assert status == 200 and not [name for name in headers if name.startswith("x-remote")]
    assert ask(four.address("core"), f"{CONFIG_MAPS}?trace=1", token="alice-token", x_remote_trace="tell")[0] == 403


def test_one_request_is_one_exported_trace(four: Services, collector: Collector) -> None:
    status, headers, _ = ask(four.url, CONFIG_MAPS, {"metadata": {"name": "one-trace"}}, user_agent="one-trace")
    assert status == 201
    audit_id = headers["audit-id"]

    def of_request(service: str) -> ReceivedSpan | None:
        return next(
            (
                s
                for s in collector.spans
                if s.attributes.get("audit-id") == audit_id and s.kind == 2 and s.resource["service.name"] == service
            ),
            None,
        )

    collector.wait_for(lambda _: bool(of_request("apiserver") and of_request("apiserver-core")))
    front, core = of_request("apiserver"), of_request("apiserver-core")
    assert front is not None and core is not None
    mine = {s.span_id: s for s in collector.spans if s.trace_id == front.trace_id}
    assert core.trace_id == front.trace_id and front.parent == ""
    hop = mine[core.parent]
    assert (hop.name, hop.kind, mine[hop.parent].name) == ("HTTP POST", 3, "service core")
    txn = next(s for s in mine.values() if s.name == "etcdserverpb.KV/Txn")
    assert mine[txn.parent].name == "Create etcd3"
    assert {key: txn.attributes[key] for key in ("rpc.method", "rpc.system.name", "rpc.response.status_code")} == {
        "rpc.method": "etcdserverpb.KV/Txn",
        "rpc.system.name": "grpc",
        "rpc.response.status_code": "OK",
    }
    for name in ("aggregator", "core"):  # both log the same id
        lines = [orjson.loads(line) for line in four.log(name).read_bytes().splitlines() if line.startswith(b"{")]
        mine_of_log = [line for line in lines if line.get("audit-ID") == audit_id]
        assert [line["msg"] for line in mine_of_log] == ["HTTP"]
        assert mine_of_log[0]["traceID"] == front.trace_id
