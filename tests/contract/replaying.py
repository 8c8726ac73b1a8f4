"""The recordings, the lists of scenarios, and the replay of one recording."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contract import golden
from contract.http2_server import Http2Server
from support.server import Server

HERE = Path(__file__).parent
LINES = (HERE / "not_yet.txt").read_text().splitlines()
NOT_YET = {line.split("#")[0].strip() for line in LINES} - {""}
OVER_HTTP2 = set((HERE / "over_http2.txt").read_text().splitlines()[1:])
UNSTEADY = {line.split("#")[0].strip() for line in LINES if "# unsteady:" in line}
RECORDINGS = sorted(
    [*(HERE / "recordings").glob("*.json"), *(HERE / "more").glob("*.json")], key=lambda path: path.stem
)
FLAGS = (
    f"--token-auth-file={HERE / 'tokens.csv'}",
    "--authorization-mode=Node,RBAC",
    "--enable-bootstrap-token-auth",
    "--enable-admission-plugins=NodeRestriction",
    "--service-cluster-ip-range=10.0.0.0/24",
    "--service-account-issuer=https://kubernetes.default.svc",
    "--enable-aggregator-routing",
)


def client_of(url: str, ca: str, timeout: float, *, http2: bool) -> golden.Server:
    """Return a client with the tokens of the recordings. `timeout` limits the wait for a state, in seconds."""
    return (Http2Server if http2 else golden.Server)(url, ca, str(HERE / "tokens.csv"), timeout)


def replay(path: Path, server: Server, timeout: float, *, http2: bool = False) -> list[str]:
    """Replay a recording, and return the differences between the responses and the recorded ones."""
    recording = json.loads(path.read_text())
    client = client_of(server.url, str(server.ca), timeout, http2=http2)
    try:
        answers = golden.run(recording, client)
    finally:
        client.close()
    return [
        f"step {number} {step['request']}: {line}"
        for number, (step, answer) in enumerate(zip(recording["steps"], answers, strict=True), 1)
        for line in _differences(step, answer)
    ]


def _differences(step: dict[str, Any], answer: dict[str, Any]) -> Iterator[str]:
    """Yield the differences of one step.

    A step that is not compared must at least have reached the state it waits for.
    """
    if step.get("record") is not False:
        yield from golden.compare(step["answer"], answer)
    elif "never" in answer:
        yield f"never came to hold: {answer['never']}"
