"""Webhooks over HTTP/2: those at a local URL share one connection. Others are called over HTTP/1.1, as upstream."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from support.http2_backend import Http2Backend, Http2Peer
from support.https_client import HttpsClient
from support.server import Server, running
from tetrapod.generic.certificates.authority import Authority
from tetrapod.generic.http2 import frames

MAPS: Final = "/api/v1/namespaces/default/configmaps"
AT_ONCE: Final = 5


class Reviewer:
    """Allows reviews over HTTP/2, and only when as many as expected wait for their response at the same time."""

    def __init__(self, at_once: int) -> None:
        self.at_once = at_once

    async def serve(self, peer: Http2Peer) -> None:
        await peer.greet()
        bodies: dict[int, bytes] = defaultdict(bytes)
        waiting: list[tuple[int, str]] = []
        while True:
            kind, flags, stream, payload = await peer.frame(frames.HEADERS, frames.DATA)
            if kind == frames.DATA:
                bodies[stream] += payload
            if flags & frames.END_STREAM:
                waiting.append((stream, json.loads(bodies.pop(stream))["request"]["uid"]))
            if len(waiting) >= self.at_once:
                for answered, uid in waiting:
                    peer.answer(answered, _allowed(uid))
                waiting.clear()


def _allowed(uid: str) -> bytes:
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return json.dumps({**review, "response": {"uid": uid, "allowed": True}}).encode()


def context(authority: Authority, directory: Path) -> ssl.SSLContext:
    pair = directory / "webhook.pem"
    pair.write_bytes(b"".join(authority.issue_server("webhook", ["127.0.0.1"])))
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(pair)
    return made


def configuration(backend: Http2Backend, authority: Authority) -> dict[str, Any]:
    client_config = {
        "url": f"https://127.0.0.1:{backend.endpoint.port}/review",
        "caBundle": base64.b64encode(authority.certificate_pem).decode(),
    }
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    webhook = {
        "name": "v.example.com",
        "clientConfig": client_config,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": 20,
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
    }
    return {"metadata": {"name": "v"}, "webhooks": [webhook]}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("server")) as server:
        yield server


async def test_reviews_at_the_same_time_share_one_connection(server: Server, tmp_path: Path) -> None:
    client, authority = HttpsClient(server.kubeconfig), Authority.create("webhook-ca")
    reviewer = Reviewer(AT_ONCE)
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    async with Http2Backend(reviewer.serve, context(authority, tmp_path)) as backend:
        made = await asyncio.to_thread(client.call, "POST", path, configuration(backend, authority))
        assert made.status == 201
        try:
            for turn in range(2):
                names = [f"m{turn}-{i}" for i in range(AT_ONCE)]
                calls = (asyncio.to_thread(client.call, "POST", MAPS, {"metadata": {"name": name}}) for name in names)
                assert {reply.status for reply in await asyncio.gather(*calls)} == {201}
            assert backend.connections == 1
        finally:
            await asyncio.to_thread(client.call, "DELETE", f"{path}/v")
