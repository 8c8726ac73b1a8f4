"""ValidatingAdmissionPolicies: the resources that they apply to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.https_client import HttpsClient
from support.server import Server, running
from support.waiting import until

GROUP = "/apis/admissionregistration.k8s.io/v1"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    """Send requests to a server whose policy rejects every write of the group that it belongs to."""
    directory: Path = tmp_path_factory.mktemp("policies")
    with running(directory) as server:
        yield _with_policy(server)


def _with_policy(server: Server) -> HttpsClient:
    client = HttpsClient(server.kubeconfig)
    rules = [
        {
            "apiGroups": ["admissionregistration.k8s.io"],
            "apiVersions": ["*"],
            "operations": ["CREATE"],
            "resources": ["*"],
        }
    ]
    spec = {
        "matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": "false", "message": "no more configurations"}],
    }
    policy = {"metadata": {"name": "closed"}, "spec": spec}
    assert client.call("POST", f"{GROUP}/validatingadmissionpolicies", policy).status == 201
    binding = {"metadata": {"name": "closed"}, "spec": {"policyName": "closed", "validationActions": ["Deny"]}}
    assert client.call("POST", f"{GROUP}/validatingadmissionpolicybindings", binding).status == 201
    return client


def rejection(client: HttpsClient, kind: str) -> str:
    """Return the message with which the policy rejects a webhook configuration, once it is in effect."""

    def rejected() -> str:
        answer = client.call("POST", f"{GROUP}/{kind}webhookconfigurations?dryRun=All", {"metadata": {"name": "a"}})
        return "" if answer.status == 201 else answer.message

    return until(rejected, bool, description="the policy is in effect")


@pytest.mark.parametrize("kind", ["mutating", "validating"])
def test_policies_apply_to_webhook_configurations(client: HttpsClient, kind: str) -> None:
    assert "no more configurations" in rejection(client, kind)


@pytest.mark.parametrize("kind", ["mutating", "validating"])
def test_policies_do_not_apply_to_policies_and_bindings(client: HttpsClient, kind: str) -> None:
    assert "no more configurations" in rejection(client, "validating")
    actions = {"validationActions": ["Deny"]} if kind == "validating" else {}
    binding = {"metadata": {"name": "another"}, "spec": {"policyName": "closed", **actions}}
    answer = client.call("POST", f"{GROUP}/{kind}admissionpolicybindings?dryRun=All", binding)
    assert answer.status == 201
