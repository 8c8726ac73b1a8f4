"""Names of Services with a leading digit, behind the gate RelaxedServiceNameValidation (locked since v1.37).

The answers are compared with those of kube-apiserver too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.etcd import running_etcd
from support.forms import ETCD, STOCK, serving_over
from support.https_client import MERGE, HttpsClient

SERVICES = "/api/v1/namespaces/default/services"
INGRESSES = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
LABEL = "a DNS-1035 label must consist of"


def _service(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 1}]}}


def _ingress(name: str, service: str) -> dict[str, Any]:
    backend = {"service": {"name": service, "port": {"number": 80}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    return {"metadata": {"name": name}, "spec": {"rules": [{"http": {"paths": [path]}}]}}


@pytest.mark.parametrize("form", [ETCD, STOCK])
def test_names_with_a_leading_digit_are_rejected_while_release_1_34_is_emulated(form: str, tmp_path: Path) -> None:
    with running_etcd(tmp_path / "etcd") as etcd:
        with serving_over(etcd, form, tmp_path / "present") as client:
            assert client.call("POST", SERVICES, _service("9-s")).status == 201
            assert client.call("POST", INGRESSES, _ingress("old", "9-s")).status == 201
        with serving_over(etcd, form, tmp_path / "emulated", "--emulated-version=1.34") as client:
            _check_rejections(client)


def _check_rejections(client: HttpsClient) -> None:
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


@pytest.mark.parametrize("form", [ETCD, STOCK])
def test_names_with_a_leading_digit_are_accepted_with_the_gate_in_release_1_34(form: str, tmp_path: Path) -> None:
    flags = ("--emulated-version=1.34", "--feature-gates=RelaxedServiceNameValidation=true")
    with running_etcd(tmp_path / "etcd") as etcd, serving_over(etcd, form, tmp_path / "server", *flags) as client:
        assert client.call("POST", SERVICES, _service("8-s")).status == 201
        assert client.call("POST", INGRESSES, _ingress("new", "8-s")).status == 201
