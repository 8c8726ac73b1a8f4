"""Names of Services with a leading digit, behind the gate RelaxedServiceNameValidation (locked since v1.37)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.https_client import MERGE, HttpsClient
from support.server import running

SERVICES = "/api/v1/namespaces/default/services"
INGRESSES = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
LABEL = "a DNS-1035 label must consist of"


def _service(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 1}]}}


def _ingress(name: str, service: str) -> dict[str, Any]:
    backend = {"service": {"name": service, "port": {"number": 80}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    return {"metadata": {"name": name}, "spec": {"rules": [{"http": {"paths": [path]}}]}}


def test_names_with_a_leading_digit_are_rejected_while_release_1_34_is_emulated(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        client = HttpsClient(server.kubeconfig)
        assert client.call("POST", SERVICES, _service("9-s")).status == 201
        assert client.call("POST", INGRESSES, _ingress("old", "9-s")).status == 201
    with running(tmp_path, "--emulated-version=1.34") as server:
        client = HttpsClient(server.kubeconfig)
        reply = client.call("POST", SERVICES, _service("8-s"))
        assert (reply.status, LABEL in reply.message) == (422, True)
        assert client.call("POST", SERVICES, _service("s")).status == 201
        labels = {"metadata": {"labels": {"a": "b"}}}
        assert client.call("PATCH", f"{SERVICES}/9-s", labels, MERGE).status == 200
        reply = client.call("POST", INGRESSES, _ingress("new", "9-s"))
        assert (reply.status, LABEL in reply.message) == (422, True)
        assert client.call("POST", INGRESSES, _ingress("new", "s")).status == 201
        reply = client.call("PUT", f"{INGRESSES}/new", _ingress("new", "9-s"))
        assert (reply.status, LABEL in reply.message) == (422, True)
        assert client.call("PUT", f"{INGRESSES}/old", _ingress("old", "8-s")).status == 200
        assert client.call("PUT", f"{INGRESSES}/old", _ingress("old", "s")).status == 200


def test_names_with_a_leading_digit_are_accepted_with_the_gate_in_release_1_34(tmp_path: Path) -> None:
    flags = ("--emulated-version=1.34", "--feature-gates=RelaxedServiceNameValidation=true")
    with running(tmp_path, *flags) as server:
        client = HttpsClient(server.kubeconfig)
        assert client.call("POST", SERVICES, _service("8-s")).status == 201
        assert client.call("POST", INGRESSES, _ingress("new", "8-s")).status == 201
