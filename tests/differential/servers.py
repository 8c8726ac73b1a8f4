"""The two servers: kube-apiserver with the controllers that need no nodes, and Tetrapod as one process."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from contract import golden
from contract.replaying import FLAGS, HERE
from support import kube_apiserver, server, stock
from support.etcd import running_etcd
from tetrapod.machinery import protobuf
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind
from tetrapod.machinery.schema import decode as typed
from tetrapod.machinery.types.definitions import schema_for

PATIENCE: Final = 8.0
"""Seconds that a step waits for a state."""
CONTROLLERS: Final = (
    "namespace-controller",
    "garbage-collector-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "root-ca-certificate-publisher-controller",
    "resourcequota-controller",
    "ttl-after-finished-controller",
    "clusterrole-aggregation-controller",
    "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller",
    "validatingadmissionpolicy-status-controller",
)
"""The controllers that ran when the recordings of tests/contract were made."""
Answer = dict[str, Any]

_ORIGINAL_FLAGS: Final = (
    "--enable-bootstrap-token-auth",
    "--enable-admission-plugins=NodeRestriction",
    "--enable-aggregator-routing",
    "--allow-privileged",
)
"""The flags of the recordings that `kube_apiserver.arguments` does not set."""
_FIRST_ACCOUNT: Final[dict[str, Any]] = {
    "request": "GET /api/v1/namespaces/default/serviceaccounts/default",
    "until": {"metadata.name": "default"},
}
"""Waits until the controllers run."""


class Client(golden.Server):
    """A client that presents responses in protobuf as JSON, because their fields have another order at each server."""

    def request(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None, events: int = 0
    ) -> tuple[int, dict[str, str], bytes | list[bytes]]:
        status, got, payload = super().request(method, path, headers, body, events)
        return status, got, _readable(payload) if isinstance(payload, bytes) else payload


def _readable(payload: bytes) -> bytes:
    """Return an object in protobuf as JSON, and other payloads unchanged."""
    if not payload.startswith(protobuf.MAGIC):
        return payload
    try:
        obj = protobuf.decode(payload, GroupVersionKind("", "", ""))
        kind = GroupVersion.parse(obj.get("apiVersion", "")).with_kind(obj.get("kind", ""))
        typed.decode(schema_for(kind), obj)  # removes the empty values that only kube-apiserver writes
    except (protobuf.DecodeError, typed.DecodeError, KeyError):
        return payload
    return json.dumps(obj).encode()


@dataclass(frozen=True)
class Pair:
    """A client of each server. Requests are sent to both at once."""

    original: golden.Server
    ours: golden.Server
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2))

    def both(self, step: dict[str, Any], names: tuple[dict[str, str], dict[str, str]]) -> tuple[Answer, Answer]:
        """Perform a step at both servers.

        Args:
            names: the saved values of each server.
        """
        futures = [
            self._pool.submit(perform, step, own, client)
            for own, client in zip(names, (self.original, self.ours), strict=True)
        ]
        first, second = [future.result() for future in futures]
        return first, second


def perform(step: dict[str, Any], names: dict[str, str], client: golden.Server) -> Answer:
    """Perform a step at one server. The status is 0 if the server closes the connection without a response."""
    try:
        return golden.perform(step, names, client)
    except (http.client.HTTPException, ConnectionError):
        return {"status": 0, "headers": {}, "body": "no response"}


@contextlib.contextmanager
def pair(directory: Path, *flags: str) -> Iterator[Pair]:
    """Run both servers, with the flags and tokens of the recordings and with further flags."""
    with contextlib.ExitStack() as stack:
        original = stack.enter_context(_original(directory / "original", flags))
        ours = stack.enter_context(server.running(directory / "ours", *FLAGS, *flags))
        tokens = str(HERE / "tokens.csv")
        first, second = [Client(one.url, str(one.ca), tokens, PATIENCE) for one in (original, ours)]
        stack.callback(first.close)
        stack.callback(second.close)
        for client in (first, second):
            client.timeout = 60
            golden.perform(_FIRST_ACCOUNT, {}, client)
            client.timeout = PATIENCE
        yield Pair(first, second)


@contextlib.contextmanager
def _original(directory: Path, flags: tuple[str, ...]) -> Iterator[kube_apiserver.KubeApiserver]:
    directory.mkdir()
    with running_etcd(directory / "etcd") as etcd:
        binary = stock.binaries()["kube-apiserver"]
        tokens = (HERE / "tokens.csv").read_text()
        with (
            kube_apiserver.running_over(
                etcd.url, binary, directory, *_ORIGINAL_FLAGS, *flags, tokens=tokens
            ) as started,
            stock.controller_manager(directory, started.kubeconfig, *_manager_flags(started)),
        ):
            yield started


def _manager_flags(started: kube_apiserver.KubeApiserver) -> list[str]:
    return [
        f"--controllers={','.join(CONTROLLERS)}",
        f"--service-account-private-key-file={started.pki.directory / 'sa.key'}",
        f"--root-ca-file={started.ca}",
        "--leader-elect=false",
    ]
