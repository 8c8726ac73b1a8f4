"""The latency of one user while another floods the server: GETs at a steady rate over one connection, timed on a plain
socket.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bench import h2load, wrk
from bench.client import Client, Rejected
from bench.objects import NAMESPACE, config_map, namespace, pod, service_account
from bench.targets import FLOODING, QUIET, USERS
from bench.wrk import Load

CONNECTIONS: Final = 64
PACE: Final = 0.004
REQUESTS: Final = 1000
_LISTED: Final = "bench-flooded"
_MAPS: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
_BINDINGS: Final = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"

FLOODS: Final = {
    "flood-get": Load(f"{_MAPS}/one"),
    "flood-list": Load(f"/api/v1/namespaces/{_LISTED}/pods"),
    "flood-write": Load(
        f"{_MAPS}/flooded-@M@",
        method="PATCH",
        content_type="application/merge-patch+json",
        body='{"data":{"n":"@N@"}}',
        modulus=CONNECTIONS,
    ),
}
"""Floods by the quantity of the results table that each measures."""
STREAMS: Final = "flood-streams"
"""The flood of GETs that are streams of one HTTP/2 connection."""


async def prepare(client: Client) -> None:
    """Both users may do everything. Neither is in `system:masters`, whose requests are never queued."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": USERS}]
    await client.create(_BINDINGS, {"metadata": {"name": USERS}, "roleRef": role, "subjects": subjects})
    await client.create("/api/v1/namespaces", namespace(_LISTED))
    await client.create(f"/api/v1/namespaces/{_LISTED}/serviceaccounts", service_account("default"))
    await client.create_all(f"/api/v1/namespaces/{_LISTED}/pods", (pod(f"pod-{i}", 0) for i in range(500)))
    await client.create_all(_MAPS, (config_map(f"flooded-{i}") for i in range(CONNECTIONS)))


def measure(
    url: str,
    directory: Path,
    rounds: int,
    wants: Callable[[str], bool],
    put: Callable[[str, float], None],
    say: Callable[[str], None],
) -> None:
    """Measure each flood that `wants` selects and a quiet period just before it.

    The round with the median ratio is reported.
    """
    quiet: list[float] = []
    floods = {**FLOODS, STREAMS: FLOODS["flood-get"]} if h2load.available() else FLOODS
    for key, load in floods.items():
        if not wants(key):
            continue
        ratios = []
        for _ in range(rounds):
            alone = _p99(url)
            with _flood(url, load, directory, http2=key == STREAMS) as flood:
                crowded = _p99(url)
                figures = flood()
            say(
                f"  {key}: p99 {alone * 1e3:.2f} ms, {crowded * 1e3:.2f} ms under "
                f"{figures.requests / figures.seconds:,.0f} a second"
                f" ({figures.failed} rejected, {figures.broken} broken)"
            )
            quiet.append(alone)
            ratios.append(crowded / alone)
        put(key, statistics.median(ratios))
    put("flood-quiet", statistics.median(quiet) * 1e3)


@contextlib.contextmanager
def _flood(url: str, load: Load, directory: Path, *, http2: bool) -> Iterator[Callable[[], wrk.Figures]]:
    seconds = REQUESTS * PACE * 2
    if http2:
        run = h2load.begin(url, FLOODING, load, seconds, directory, streams=h2load.STREAMS)
        process, figures = run.process, run.figures
    else:
        process = _wrk(url, load, seconds, directory)
        figures = partial(wrk.figures, process)
    try:
        time.sleep(0.7)
        yield figures
    finally:
        process.kill()
        process.wait()


def _wrk(url: str, load: Load, seconds: float, directory: Path) -> subprocess.Popen[str]:
    return wrk.begin(url, FLOODING, load, seconds, directory, start=int(time.time()), connections=CONNECTIONS)


def _p99(url: str) -> float:
    """Return the latencies in seconds."""
    parts = urlsplit(url)
    request = (
        f"GET {_MAPS}/one HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {QUIET}\r\n"
        "Accept: application/json\r\n\r\n"
    ).encode()
    context = ssl._create_unverified_context()
    with context.wrap_socket(
        socket.create_connection((parts.hostname or "", parts.port or 443), timeout=60)
    ) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(20):
            _ask(connection, request)
        taken = []
        due = time.perf_counter()
        for _ in range(REQUESTS):
            begun = time.perf_counter()
            _ask(connection, request)
            taken.append(time.perf_counter() - begun)
            due += PACE
            time.sleep(max(0.0, due - time.perf_counter()))
    return sorted(taken)[len(taken) * 99 // 100]


def _ask(connection: ssl.SSLSocket, request: bytes) -> None:
    connection.sendall(request)
    received = b""
    while True:
        received += _more(connection)
        head, found, body = received.partition(b"\r\n\r\n")
        if found:
            break
    if b" 200 " not in head[:16]:
        raise Rejected(f"the quiet user: {head.splitlines()[0].decode(errors='replace')}")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    length = int(lengths[0].partition(b":")[2])
    while len(body) < length:
        body += _more(connection)


def _more(connection: ssl.SSLSocket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise Rejected("the quiet user's connection was closed")
    return data
