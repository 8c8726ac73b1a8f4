"""The kinds of traffic. Each is a coroutine function that goes on until it is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final

from chaos.http import Address, Connection, NoAnswer, NotSent
from soak.errors import RAW, WRONG
from soak.prepared import CONFIG_MAPS, NAMESPACE, PODS, config_map, service_account
from soak.traffic import Traffic

_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_MERGE: Final = "application/merge-patch+json"
_TOKEN_USES: Final = 40
_PATIENCE: Final = 20.0
_FOUND: Final = 200


@asynccontextmanager
async def _connected(address: Address) -> AsyncIterator[Connection]:
    connection = Connection(address, timeout=60)
    try:
        yield connection
    finally:
        connection.close()


async def credentials(traffic: Traffic, number: int) -> None:
    """Read and write with each credential in turn, a few requests to a connection."""
    account = await service_account(traffic.world)
    for round_ in itertools.count(1):
        if round_ % _TOKEN_USES == 0:
            account = await service_account(traffic.world)
        for name, address in {**traffic.world.cases, "service account": account}.items():
            async with traffic.gate.passing(), _connected(address) as connection:
                await _some_requests(traffic, connection, f"{name.replace(' ', '-')}-{number}")


async def _some_requests(traffic: Traffic, connection: Connection, name: str) -> None:
    path = f"{CONFIG_MAPS}/{name}"
    for method, target, body in (
        ("GET", f"{CONFIG_MAPS}/present", None),
        ("GET", "/apis", None),
        ("GET", f"{CONFIG_MAPS}?limit=5", None),
        ("POST", CONFIG_MAPS, config_map(name, a="1")),
        ("PATCH", path, {"data": {"a": "2"}}),
        ("GET", path, None),
        ("DELETE", path, None),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", _access_review()),
    ):
        await traffic.ask(connection, method, target, body, _MERGE if method == "PATCH" else "application/json")


def _access_review() -> dict[str, Any]:
    attributes = {"verb": "get", "resource": "pods", "namespace": NAMESPACE}
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }


async def errors(traffic: Traffic, number: int) -> None:
    """Send every request that is rejected, by client certificate and by token."""
    cases = (traffic.world.admin, traffic.world.cases["static token"], traffic.world.cases["impersonation"])
    for round_ in itertools.count():
        async with traffic.gate.passing(), _connected(cases[round_ % len(cases)]) as connection:
            for wrong in WRONG:
                if round_ % wrong.every == 0:
                    await traffic.ask(connection, wrong.method, wrong.path, wrong.body, wrong.content_type)
        for data in RAW:
            async with traffic.gate.passing():
                with contextlib.suppress(OSError):
                    await traffic.raw(traffic.world.admin, data)


async def watches(traffic: Traffic, number: int) -> None:
    """Open watches, and close them early or let them end."""
    draw = random.Random(number)
    cases = (traffic.world.admin, traffic.world.cases["static token"])
    initial = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    queries = ("watch=1", "watch=1&timeoutSeconds=1", initial)
    for round_ in itertools.count():
        async with traffic.gate.passing():
            path = f"{CONFIG_MAPS if round_ % 2 else PODS}?{queries[round_ % 3]}"
            await watch(traffic, cases[round_ % len(cases)], path, draw.uniform(0.0, 0.3))


async def watch(traffic: Traffic, address: Address, path: str, seconds: float) -> None:
    """Read a watch until it has been quiet for some time, and cut it; one with a timeout is read to its end."""
    connection = Connection(address, timeout=60)
    traffic.requests += 1
    idle = 60 if "timeoutSeconds" in path else seconds + 0.01
    with contextlib.suppress(NotSent, NoAnswer, TimeoutError):
        async with asyncio.timeout(3), connection.stream("GET", path, idle=idle) as (status, lines):
            traffic.statuses[status] += 1
            async for _ in lines:
                pass


async def connections(traffic: Traffic, number: int) -> None:
    """Open connections and close them at every stage."""
    admin, unknown = traffic.world.admin, traffic.world.unknown
    post = (
        f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
    ).encode()
    get = f"GET {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    while True:
        for address, data, options in (
            (admin, b"", {}),
            (admin, post[:30], {}),
            (admin, post + b"{", {}),
            (admin, get, {}),
            (admin, b"\x16\x03\x01 no handshake", {"tls": False}),
            (admin, b"", {"tls": False}),
            (unknown, get, {"response": True}),
        ):
            async with traffic.gate.passing():
                with contextlib.suppress(OSError, EOFError, TimeoutError):
                    await broken_off(traffic, address, data, **options)
        async with traffic.gate.passing():
            with contextlib.suppress(OSError, EOFError, TimeoutError):
                await upgrade(traffic, admin)


async def broken_off(
    traffic: Traffic, address: Address, data: bytes, *, tls: bool = True, response: bool = False
) -> None:
    """Connect, send, optionally wait for the beginning of the response, and reset the connection."""
    traffic.requests += 1
    reader, writer = await traffic.connect(address, tls=tls)
    try:
        writer.write(data)
        await writer.drain()
        if response:
            async with asyncio.timeout(_PATIENCE):
                await reader.read(1)
        await asyncio.sleep(0.02)  # so that a part of it is in transit
    finally:
        writer.transport.abort()


async def upgrade(traffic: Traffic, address: Address) -> None:
    """Exec into the pod: the connection is upgraded, carries a message each way, and is reset."""
    traffic.requests += 1
    reader, writer = await traffic.connect(address)
    try:
        target = f"{PODS}/guarded/exec?command=ls&stdout=true&container=c"
        writer.write(
            (
                f"POST {target} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
                "Content-Length: 0\r\n\r\n"
            ).encode()
        )
        async with asyncio.timeout(_PATIENCE):
            status = int((await reader.readuntil(b"\r\n\r\n")).split()[1])
        traffic.statuses[status] += 1
        if status == 101:
            writer.write(b"message")
            async with asyncio.timeout(_PATIENCE):
                await reader.readexactly(7)
    finally:
        writer.transport.abort()


async def namespaces(traffic: Traffic, number: int) -> None:
    """Create a namespace with an object in it, delete it, and wait until it is gone."""
    for round_ in itertools.count():
        async with traffic.gate.passing(), _connected(traffic.world.admin) as connection:
            name = f"soak-{number}-{round_}"
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await traffic.ask(connection, "POST", "/api/v1/namespaces", body)
            await traffic.ask(connection, "POST", f"/api/v1/namespaces/{name}/configmaps", config_map("one"))
            await traffic.ask(connection, "DELETE", f"/api/v1/namespaces/{name}")
            await _until(traffic, connection, f"/api/v1/namespaces/{name}", 404)
        await asyncio.sleep(1)


async def definitions(traffic: Traffic, number: int) -> None:
    """Create a definition with an object of its kind, delete it, and wait until it is gone."""
    for round_ in itertools.count():
        async with traffic.gate.passing(), _connected(traffic.world.admin) as connection:
            plural = f"things{number}x{round_}"
            group, path = f"{plural}.soak.example.com", f"{_DEFINITIONS}/{plural}.{plural}.soak.example.com"
            await traffic.ask(connection, "POST", _DEFINITIONS, _definition(plural, group))
            objects = f"/apis/{group}/v1/namespaces/{NAMESPACE}/{plural}"
            await _until(traffic, connection, objects, _FOUND)
            thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": {"size": 3}}
            await traffic.ask(connection, "POST", objects, thing)
            await traffic.ask(connection, "POST", objects, {**thing, "spec": {"size": "wrong"}})
            await traffic.ask(connection, "GET", f"{objects}/one")
            await traffic.ask(connection, "DELETE", path)
            await _until(traffic, connection, path, 404)
        await asyncio.sleep(1)


def _definition(plural: str, group: str) -> dict[str, Any]:
    size = {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": size}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "singular": plural, "kind": "Thing", "listKind": "ThingList"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    metadata = {"name": f"{plural}.{group}"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


async def _until(traffic: Traffic, connection: Connection, path: str, status: int) -> None:
    for _ in range(300):
        if (await traffic.ask(connection, "GET", path)).status == status:
            return
        await asyncio.sleep(0.1)
    raise RuntimeError(f"{path} did not answer {status} within 30 s")


Worker = Callable[[Traffic, int], Coroutine[Any, Any, None]]
WORKERS: Final[tuple[Worker, ...]] = (credentials, errors, watches, connections, namespaces, definitions)
