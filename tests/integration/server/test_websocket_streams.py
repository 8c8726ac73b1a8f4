"""Watches and logs over WebSocket, as browsers and Kubernetes' conformance tests request them.

Tested in one process, and through the aggregator to the service that has the resource.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import websocket
from websocket import ABNF, WebSocket

from support.definitions import definition
from support.kubelet import fake_kubelet
from support.server import running
from support.services import running_services
from support.waiting import until

MAPS, WIDGETS = "/api/v1/namespaces/default/configmaps", "/apis/sockets.example.com/v1/namespaces/default/widgets"
LOG = "/api/v1/namespaces/default/pods/p/log"
PROTOBUF = "application/vnd.kubernetes.protobuf"


class Sockets(NamedTuple):
    url: str

    @contextmanager
    def open(self, path: str, *protocols: str, accept: str = "application/json", **options: Any) -> Iterator[WebSocket]:
        header = ["Authorization: Bearer admin-token", f"Accept: {accept}"]
        url = self.url.replace("https", "wss") + path
        made = websocket.create_connection(
            url,
            sslopt={"cert_reqs": ssl.CERT_NONE},
            subprotocols=protocols or None,
            header=header,
            timeout=30,
            **options,
        )
        assert isinstance(made, WebSocket)
        try:
            yield made
        finally:
            made.shutdown()  # type: ignore[no-untyped-call]

    def rejected(self, path: str, *protocols: str, origin: str = "https://localhost") -> int:
        """Return the status of a handshake that fails."""
        headers = {
            "authorization": "Bearer admin-token",
            "connection": "Upgrade",
            "upgrade": "websocket",
            "sec-websocket-version": "13",
        }
        headers["sec-websocket-key"] = base64.b64encode(bytes(16)).decode()
        headers |= {"origin": origin} if origin else {}
        headers |= {"sec-websocket-protocol": ", ".join(protocols)} if protocols else {}
        address = self.url.removeprefix("https://")
        with closing(
            http.client.HTTPSConnection(address, timeout=30, context=ssl._create_unverified_context())
        ) as connection:
            connection.request("GET", path, headers=headers)
            return connection.getresponse().status

    def post(self, path: str, body: Any) -> int:
        headers = {"authorization": "Bearer admin-token", "content-type": "application/json"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=30) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code


@contextmanager
def serving(form: str, directory: Path) -> Iterator[Sockets]:
    (directory / "tokens.csv").write_text("admin-token,admin,1,system:masters\n")
    tokens = f"--token-auth-file={directory}/tokens.csv"
    if form == "one process":
        with running(directory, tokens) as server:
            yield Sockets(server.url)
    else:
        with running_services(directory, None, form.endswith("by Unix sockets"), auth=(tokens,)) as services:
            yield Sockets(services.url)


@pytest.fixture(scope="module", params=["one process", "four services", "four services by Unix sockets"])
def sockets(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sockets]:
    with serving(request.param, tmp_path_factory.mktemp("sockets")) as sockets:
        crd = definition("sockets.example.com", "Widget")
        assert sockets.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd) == 201
        until(lambda: sockets.post(WIDGETS, widget("first")) in (201, 409))
        assert sockets.post(MAPS, {"metadata": {"name": "first"}}) == 201
        yield sockets


def widget(name: str) -> Any:
    return {"apiVersion": "sockets.example.com/v1", "kind": "Widget", "metadata": {"name": name}}


def text_of(connection: WebSocket) -> Any:
    opcode, payload = connection.recv_data()
    assert opcode == ABNF.OPCODE_TEXT
    return json.loads(payload)


@pytest.mark.parametrize("path", [MAPS, WIDGETS])
def test_each_event_of_a_watch_is_a_text_message(sockets: Sockets, path: str) -> None:
    body: Any = widget("x") if path == WIDGETS else {"metadata": {"name": "x"}}
    with sockets.open(f"{path}?watch=true&fieldSelector=metadata.name!=kube-root-ca.crt") as connection:
        names = []
        for kind in ("first", "second", "third"):
            if kind != "first":
                body["metadata"]["name"] = f"{kind}-{path[-3:]}"
                assert sockets.post(path, body) == 201
            event = text_of(connection)
            names.append((event["type"], event["object"]["metadata"]["name"]))
    assert names == [("ADDED", "first"), ("ADDED", f"second-{path[-3:]}"), ("ADDED", f"third-{path[-3:]}")]


def test_events_in_protobuf_are_binary_messages_without_their_length(sockets: Sockets) -> None:
    with sockets.open(f"{MAPS}?watch=true&fieldSelector=metadata.name=first", accept=PROTOBUF) as connection:
        opcode, payload = connection.recv_data()
    assert opcode == ABNF.OPCODE_BINARY
    assert payload.startswith(b"\x0a\x05ADDED\x12")


def test_a_watch_as_a_table_has_its_columns_in_the_first_message(sockets: Sockets) -> None:
    accept = "application/json;as=Table;g=meta.k8s.io;v=v1"
    with sockets.open(f"{WIDGETS}?watch=true&fieldSelector=metadata.name=first", accept=accept) as connection:
        assert [column["name"] for column in text_of(connection)["object"]["columnDefinitions"]] == ["Name", "Age"]


def test_a_watch_whose_time_is_over_closes_the_websocket(sockets: Sockets) -> None:
    with sockets.open(f"{MAPS}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name=none") as connection:
        opcode, payload = connection.recv_data(control_frame=True)
    assert (opcode, payload) == (ABNF.OPCODE_CLOSE, (1000).to_bytes(2, "big"))


def test_pings_are_answered_and_messages_of_the_client_are_ignored(sockets: Sockets) -> None:
    with sockets.open(f"{MAPS}?watch=true&fieldSelector=metadata.name=none") as connection:
        connection.send("hello")
        connection.ping("are you there")
        assert connection.recv_data(control_frame=True) == (ABNF.OPCODE_PONG, b"are you there")


def test_a_watch_that_cannot_begin_is_rejected_before_the_upgrade(sockets: Sockets) -> None:
    assert sockets.rejected(f"{MAPS}?watch=true&fieldSelector=spec.x=1") == 400
    assert sockets.rejected("/apis/nobody.example.com/v1/things?watch=true") == 404


def test_a_watch_without_an_origin_or_with_several_protocols_is_rejected(sockets: Sockets) -> None:
    assert sockets.rejected(f"{MAPS}?watch=true", origin="") == 403
    assert sockets.rejected(f"{MAPS}?watch=true", "one", "two") == 400
    with sockets.open(f"{MAPS}?watch=true", "one") as connection:
        assert connection.subprotocol == "one"


@pytest.fixture(scope="module")
def pod(sockets: Sockets, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with fake_kubelet(tmp_path_factory.mktemp("kubelet")) as kubelet:
        address = [{"type": "InternalIP", "address": "127.0.0.1"}]
        status = {"addresses": address, "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.port}}}
        assert sockets.post("/api/v1/nodes", {"metadata": {"name": "n"}, "status": status}) == 201
        containers = [{"name": "c", "image": "i"}]
        made = {
            "metadata": {"name": "p"},
            "spec": {"nodeName": "n", "containers": containers, "automountServiceAccountToken": False},
        }
        until(lambda: sockets.post("/api/v1/namespaces/default/pods", made) in (201, 409))
        yield


@pytest.mark.usefixtures("pod")
@pytest.mark.parametrize("protocols", [(), ("binary.k8s.io",), ("other", "base64.binary.k8s.io")])
def test_a_log_is_a_stream_of_messages_that_begins_with_an_empty_one(
    sockets: Sockets, protocols: tuple[str, ...]
) -> None:
    with sockets.open(f"{LOG}?follow=true", *protocols, suppress_origin=True) as connection:
        encoded = bool(protocols) and protocols[-1].startswith("base64")
        assert connection.subprotocol == (protocols[-1] if protocols else None)
        expected = ABNF.OPCODE_TEXT if encoded else ABNF.OPCODE_BINARY
        assert connection.recv_data() == (expected, b"")
        received = b""
        while (message := connection.recv_data(control_frame=True))[0] == expected:
            received += base64.b64decode(message[1]) if encoded else message[1]
    assert message == (ABNF.OPCODE_CLOSE, (1000).to_bytes(2, "big"))
    assert received == b"first line\n/containerLogs/default/p/c?follow=true\nand later\n"


@pytest.mark.usefixtures("pod")
def test_a_log_in_an_unknown_protocol_is_rejected(sockets: Sockets) -> None:
    assert sockets.rejected(LOG, "channel.k8s.io") == 403
    assert sockets.rejected(LOG.replace("/p/", "/none/"), "binary.k8s.io") == 404
