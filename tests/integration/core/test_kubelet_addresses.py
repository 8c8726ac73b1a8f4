"""Addresses in the status of a Node lead to TCP connections only."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.https_client import MERGE, HttpsClient
from support.server import running
from support.service_accounts import wait_for_service_account


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    with running(tmp_path_factory.mktemp("server")) as server:
        client = HttpsClient(server.kubeconfig)
        wait_for_service_account(client.call)
        yield client


def test_the_path_of_a_unix_socket_is_no_address_of_a_kubelet(client: HttpsClient) -> None:
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as listener:
        path = str(Path(directory) / "s")
        listener.bind(path)
        listener.listen()
        listener.setblocking(False)
        assert client.call("POST", "/api/v1/nodes", {"metadata": {"name": "n"}}).status == 201
        status = {"status": {"addresses": [{"type": "Hostname", "address": path}]}}
        assert client.call("PATCH", "/api/v1/nodes/n/status", status, MERGE).status == 200
        spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
        pod = client.call("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec})
        assert pod.status == 201
        answer = client.call("GET", "/api/v1/namespaces/default/pods/p/log")
        assert answer.status == 500
        assert "dial tcp" in answer.message
        assert "dial unix" not in answer.message
        with pytest.raises(BlockingIOError):  # no client has connected
            listener.accept()
