"""The load generator of `make scale`: its own tests, and a short run against one process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scale.generator import load_program
from support.server import running, start

SOURCE = Path(__file__).parents[2] / "scale/load"
TOKEN = "admin-0123456789"
NODES = 5
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("go") is None, reason="Go is not on this machine"),
    pytest.mark.timeout(900),  # the first build on a machine takes minutes
]


def _go(*arguments: str) -> str:
    done = subprocess.run(
        arguments,
        cwd=SOURCE,
        env={**os.environ, "GOFLAGS": "-mod=readonly"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_sources_are_formatted_and_vetted() -> None:
    assert not _go("gofmt", "-l", ".")
    _go("go", "vet", ".")


def test_unit_tests_of_the_program_pass() -> None:
    _go("go", "test", "-p", "2", ".")


def _command(server: str, out: Path, command: str, *flags: str) -> list[str]:
    argv = [str(load_program()), command, "--server", server, "--insecure-skip-tls-verify", "--token", TOKEN]
    return [*argv, "--out", str(out), *flags]


def _load(server: str, directory: Path, command: str, *flags: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Run a command of the program, and return its events and its result."""
    out = directory / "result.json"
    argv = _command(server, out, command, *flags)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], json.loads(out.read_text())


def test_cluster_load_has_every_kind_of_request_and_no_errors(tmp_path: Path) -> None:
    nodes = "".join(
        f'node-token-{number},system:node:node-{number},n{number},"system:nodes"\n' for number in range(NODES)
    )
    tokens = tmp_path / "tokens.csv"
    tokens.write_text(f'{TOKEN},admin,admin,"system:masters"\n{nodes}')
    flags = ["--nodes", str(NODES), "--pods-per-node", "6", "--churn", "3", "--warmup", "1s", "--duration", "5s"]
    flags += [
        "--start-delay",
        "50ms",
        "--lease-period",
        "1s",
        "--node-status-period",
        "1s",
        "--node-tokens",
        str(tokens),
    ]
    flags += [
        "--list-cached-period=1s",
        "--list-paged-period=1s",
        "--list-selector-period=1s",
        "--list-table-period=1s",
    ]
    flags += ["--flood", "2"]
    with running(tmp_path / "data", "--token-auth-file", str(tokens)) as server:
        events, result = _load(server.url, tmp_path, "cluster", *flags)
    assert [event["event"] for event in events] == ["filled", "watching", "begin", "end"]
    assert result["version"] == 1
    steady = result["steady"]
    assert not any(steady[name] for name in ("failures", "skipped", "unfinished", "pods_lost", "undelivered")), result
    counts = {
        (row["group"], row["resource"], row["subresource"], row["verb"], row["scope"]): row["count"]
        for row in result["requests"]
    }
    expected = {
        ("", "events", "", "POST", "resource"),
        ("", "nodes", "", "GET", "resource"),
        ("", "nodes", "status", "PATCH", "resource"),
        ("", "pods", "", "DELETE", "resource"),
        ("", "pods", "", "GET", "resource"),
        ("", "pods", "", "LIST", "cluster"),
        ("", "pods", "", "POST", "resource"),
        ("", "pods", "binding", "POST", "resource"),
        ("", "pods", "status", "PATCH", "resource"),
        ("", "serviceaccounts", "token", "POST", "resource"),
        ("apps", "replicasets", "status", "PUT", "resource"),
        ("coordination.k8s.io", "leases", "", "PUT", "resource"),
        ("discovery.k8s.io", "endpointslices", "", "PUT", "resource"),
        ("events.k8s.io", "events", "", "POST", "resource"),
        ("scale.tetrapod.dev", "widgets", "status", "PATCH", "resource"),
    }
    assert expected <= counts.keys()
    assert all(figures["count"] for figures in result["lists"].values()), result["lists"]
    assert all(figures["count"] for figures in result["delivery"].values()), result["delivery"]
    assert result["pod_startup"]["count"]
    for component, watches in result["watches"].items():
        assert watches["synced"] == watches["opened"], component
        assert watches["failed"] == watches["gone"] == watches["relists"] == 0, (component, watches)
    assert sum(row["count"] for row in result["flood"]) > 0


def _tokens(directory: Path) -> str:
    tokens = directory / "tokens.csv"
    tokens.write_text(f'{TOKEN},admin,admin,"system:masters"\n')
    return f"--token-auth-file={tokens}"


def test_objects_watches_and_drain(tmp_path: Path) -> None:
    with running(tmp_path / "data", _tokens(tmp_path)) as server:
        for kind in ("configmaps", "pods", "widgets", "customresourcedefinitions"):
            flags = ["--count", "60", "--kind", kind, "--namespaces", "2"]
            events, result = _load(server.url, tmp_path, "objects", *flags)
            assert [event["event"] for event in events] == ["begin", "end"]
            assert result["objects"]["count"] == 60
            assert result["steady"]["failures"] == 0, result
        flags = ["--count", "50", "--matching", "20", "--hold", "3s", "--rate", "5", "--streams", "20"]
        events, result = _load(server.url, tmp_path, "watches", *flags)
        assert [event["event"] for event in events] == ["open", "begin", "end"]
        assert events[0]["count"] == 50
        writes = next(row["count"] for row in result["requests"] if row["verb"] == "PATCH")
        assert result["delivery"]["from_sent"]["count"] == 20 * writes > 0
        assert result["steady"]["undelivered"] == result["watches"]["watchers"]["failed"] == 0
        _load(server.url, tmp_path, "drain", "--namespace", "objects-0", "--collection", "configmaps")
        events, result = _load(server.url, tmp_path, "drain", "--namespace", "objects-0")
        assert [event["event"] for event in events] == ["begin", "answered", "end"]
        assert result["steady"]["failures"] == 0, result


def test_informers_of_a_storm_watch_again_after_a_restart(tmp_path: Path) -> None:
    flags = [_tokens(tmp_path)]
    server = start(tmp_path / "data", *flags)
    port = int(server.url.rpartition(":")[2])
    out = tmp_path / "storm.json"
    argv = _command(server.url, out, "storm", "--watchers", "40", "--streams", "20", "--relist", "--probe-rate", "0")
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as storm:
        try:
            assert storm.stdout is not None
            assert json.loads(storm.stdout.readline()) | {"seconds": 0} == {
                "event": "watching",
                "count": 40,
                "seconds": 0,
            }
            server.stop()
            server = start(tmp_path / "data", *flags, port=port)
            assert [json.loads(line)["event"] for line in storm.stdout] == ["lost", "recovered"]
            assert storm.wait() == 0
        finally:
            storm.kill()
            server.stop()
    (round_,) = json.loads(out.read_text())["rounds"]
    assert round_["relists"] >= 40
    assert sum(row["count"] for row in round_["requests"] if row["verb"] == "WATCHLIST") >= 40
