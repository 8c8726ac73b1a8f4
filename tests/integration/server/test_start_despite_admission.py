"""A server starts although the cluster's own webhooks and policies reject everything that it writes."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.https_client import HttpsClient
from support.server import running
from support.services import running_services

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
EVERYTHING = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["*/*"]}
WRITTEN_AT_START = (
    "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication",
    "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical",
    "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/probes",
    "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/workload-low",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/view",
    "/api/v1/namespaces/default/services/kubernetes",
    "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps",
)
DENIED = "denied by the test"
NOBODY = "https://127.0.0.1:9/"

pytestmark = pytest.mark.long


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a webhook that accepts connections and never responds."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}/"


def webhooks(url: str) -> list[tuple[str, Any]]:
    declared = {
        "name": "everything.example.com",
        "clientConfig": {"url": url},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": 15,
        "rules": [EVERYTHING],
    }
    return [
        (f"{ADMISSION}/{kind.lower()}s", {"metadata": {"name": "everything"}, "webhooks": [declared]})
        for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
    ]


def policies() -> list[tuple[str, Any]]:
    spec = {
        "matchConstraints": {"resourceRules": [EVERYTHING]},
        "validations": [{"expression": "false", "message": DENIED}],
    }
    binding = {"policyName": "everything", "validationActions": ["Deny"]}
    return [
        (f"{ADMISSION}/validatingadmissionpolicies", {"metadata": {"name": "everything"}, "spec": spec}),
        (f"{ADMISSION}/validatingadmissionpolicybindings", {"metadata": {"name": "everything"}, "spec": binding}),
    ]


def reject_everything(client: HttpsClient, declared: list[tuple[str, Any]], reason: str) -> None:
    """Delete the objects that the server creates at its start, and reject their creation."""
    for path in WRITTEN_AT_START:
        client.call("DELETE", path)
    for path, obj in declared:
        answer = client.call("POST", path, obj)
        assert answer.status == 201, answer.message
    probe = {"metadata": {"name": "probe"}}
    client.until(
        lambda answer: reason in answer.message,
        "POST",
        "/api/v1/namespaces/default/configmaps?dryRun=All",
        probe,
        timeout=60,
    )


def accept_everything(client: HttpsClient, declared: list[tuple[str, Any]]) -> None:
    for path, obj in reversed(declared):
        assert client.call("DELETE", f"{path}/{obj['metadata']['name']}").status == 200


def check_bootstrap_objects(client: HttpsClient) -> None:
    for path in WRITTEN_AT_START:
        client.until(lambda answer: answer.status == 200, "GET", path, timeout=90)


@pytest.mark.parametrize("kind", ["unreachable webhooks", "silent webhooks", "denying policies"])
def test_a_server_starts_although_admission_rejects_its_writes(tmp_path: Path, kind: str, silent: str) -> None:
    declared = policies() if kind == "denying policies" else webhooks(silent if kind == "silent webhooks" else NOBODY)
    with running(tmp_path) as server:
        reject_everything(
            HttpsClient(server.kubeconfig), declared, DENIED if kind == "denying policies" else "failed calling webhook"
        )
    with running(tmp_path) as server:  # the server is ready
        client = HttpsClient(server.kubeconfig)
        assert client.call("GET", WRITTEN_AT_START[0]).status == 404
        accept_everything(client, declared)
        check_bootstrap_objects(client)


def test_four_services_start_although_admission_rejects_their_writes(tmp_path: Path) -> None:
    declared = [*webhooks(NOBODY), *policies()]
    with running_services(tmp_path) as services:
        client = HttpsClient(services.kubeconfig)
        reject_everything(client, declared, "failed calling webhook")
        services.stop_all(*services.keys)
        for key in services.keys:
            services.start(key)
        for key in services.keys:
            services.wait_ready(key)
        accept_everything(client, declared)
        check_bootstrap_objects(client)
