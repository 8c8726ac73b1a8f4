"""An OpenTelemetry collector, and helpers to read traces."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from support.otlp import Collector

TOKENS = Path(__file__).parents[2] / "contract" / "tokens.csv"
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with Collector() as collector, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        yield collector


def tracing_file(directory: Path, collector: Collector, rate: int = 0) -> str:
    file = directory / "tracing.yaml"
    head = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"
    file.write_text(f"{head}endpoint: {collector.endpoint}\nsamplingRatePerMillion: {rate}\n")
    return str(file)


def ask(
    url: str, path: str, body: Any = None, token: str = "admin-token", method: str = "", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers (in lower case) and body."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    sent["authorization"] = f"Bearer {token}"
    data = None if body is None else orjson.dumps(body)
    if data is not None:
        sent.setdefault("content-type", "application/json")
    request = urllib.request.Request(url + path, data, sent, method=method or ("GET" if data is None else "POST"))
    context = ssl._create_unverified_context()
    try:
        with urllib.request.urlopen(request, context=context, timeout=60) as answer:
            return answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, {k.lower(): v for k, v in error.headers.items()}, error.read()


def traced(url: str, path: str, body: Any = None, method: str = "", **headers: str) -> dict[str, Any]:
    """Return the trace of a request."""
    status, _, answer = ask(url, f"{path}{'&' if '?' in path else '?'}trace=1", body, method=method, **headers)
    assert status == 200, answer
    report: dict[str, Any] = orjson.loads(answer)
    return report


def steps(spans: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for span in spans:
        yield span
        yield from steps(span.get("spans", []))


def step(report: dict[str, Any], name: str) -> dict[str, Any]:
    found = [span for span in steps(report["spans"]) if span["name"] == name]
    assert len(found) == 1, (name, [span["name"] for span in steps(report["spans"])])
    return found[0]


def names(report: dict[str, Any]) -> list[str]:
    return [span["name"] for span in steps(report["spans"])]
