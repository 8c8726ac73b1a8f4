"""`--break-glass`: an administrator can repair webhooks and policies that reject everything."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.https_client import HttpsClient
from support.server import Server, free_port, running
from support.wire import Client

GROUP = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}]
PATH = "/api/v1/namespaces/default/configmaps"
TOKENS = 'alice-token,alice,1\nowner-token,owner,2,"system:masters"\n'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("broken")
    (directory / "tokens.csv").write_text(TOKENS)
    (directory / "policy.yaml").write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
    flags = (f"--token-auth-file={directory}/tokens.csv", "--break-glass")
    audit = (f"--audit-policy-file={directory}/policy.yaml", f"--audit-log-path={directory}/audit.log")
    with running(directory, *flags, *audit) as server:
        yield server


@pytest.fixture(scope="module")
def kept_out(server: Server) -> Iterator[Client]:
    """Send requests as alice, which an unreachable webhook and a policy reject."""
    client = HttpsClient(server.kubeconfig)
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subjects = [{"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}]
    bound = {"metadata": {"name": "alice"}, "subjects": subjects, "roleRef": role}
    assert client.call("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", bound).status == 201
    webhook = {
        "name": "away.example.com",
        "clientConfig": {"url": f"https://127.0.0.1:{free_port()}/"},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "rules": CONFIG_MAPS,
    }
    for kind in ("Mutating", "Validating"):
        obj = {"metadata": {"name": "away"}, "webhooks": [webhook]}
        assert client.call("POST", f"{GROUP}/{kind.lower()}webhookconfigurations", obj).status == 201
    forbid_config_maps(client.call)
    with Client(server, "alice-token") as alice:
        # until they are in effect
        while (answer := alice("POST", f"{PATH}?dryRun=All", config_map("x"))).status in (201, 403):
            pass
        assert answer.status in (422, 500)
        yield alice


def forbid_config_maps(ask: Callable[[str, str, Any], Any]) -> None:
    spec = {"matchConstraints": {"resourceRules": CONFIG_MAPS}, "validations": [{"expression": "false"}]}
    assert (
        ask("POST", f"{GROUP}/validatingadmissionpolicies", {"metadata": {"name": "nothing"}, "spec": spec}).status
        == 201
    )
    binding = {"metadata": {"name": "nothing"}, "spec": {"policyName": "nothing", "validationActions": ["Deny"]}}
    assert ask("POST", f"{GROUP}/validatingadmissionpolicybindings", binding).status == 201


def config_map(name: str) -> Any:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def test_users_outside_of_system_masters_are_rejected(kept_out: Client) -> None:
    rejected = kept_out("POST", PATH, config_map("a"))
    assert rejected.status == 500
    assert 'failed calling webhook "away.example.com"' in rejected.json["message"]


def test_masters_pass_and_the_audit_event_records_it(kept_out: Client, server: Server) -> None:
    with Client(server, "owner-token") as owner:
        made = owner("POST", PATH, config_map("b"))
        assert made.status == 201
        identity = made.headers["audit-id"]
    log = (server.data_dir / "audit.log").read_text().splitlines()
    event = next(e for e in map(json.loads, log) if e["auditID"] == identity and e["stage"] == "ResponseComplete")
    passed = {
        key.removeprefix("break-glass.tetrapod.dev/") for key in event["annotations"] if key.startswith("break-glass.")
    }
    assert passed == {"MutatingAdmissionWebhook", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook"}


def test_unset_flags_are_not_passed(kept_out: Client, server: Server) -> None:
    with Client(server, "owner-token") as owner:
        assert owner("POST", "/api/v1/namespaces/nowhere/configmaps", config_map("c")).status == 404
        assert owner("POST", PATH, {**config_map("Bad Name")}).status == 422


def test_without_break_glass_the_policy_rejects_writes_of_administrators(tmp_path: Path) -> None:
    (tmp_path / "tokens.csv").write_text(TOKENS)
    with (
        running(tmp_path, f"--token-auth-file={tmp_path}/tokens.csv") as server,
        Client(server, "owner-token") as owner,
    ):
        forbid_config_maps(owner)
        while (answer := owner("POST", f"{PATH}?dryRun=All", config_map("x"))).status == 201:
            pass
        assert answer.status == 422


def test_a_webhook_that_may_deadlock_is_named_in_an_event_and_in_the_log(server: Server) -> None:
    client = HttpsClient(server.kubeconfig)
    rules = [
        {"apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["leases"]}
    ]
    webhook = {
        "name": "leases.example.com",
        "clientConfig": {"url": f"https://127.0.0.1:{free_port()}/"},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "rules": rules,
    }
    obj = {"metadata": {"name": "leases"}, "webhooks": [webhook]}
    assert client.call("POST", f"{GROUP}/validatingwebhookconfigurations", obj).status == 201
    events = "/api/v1/namespaces/default/events?fieldSelector=reason=WebhookMayDeadlock,involvedObject.name=leases"
    recorded = client.until(lambda r: bool(r.body["items"]), "GET", events).body["items"][0]
    assert recorded["type"] == "Warning"
    assert recorded["message"].startswith(
        'webhook "leases.example.com" receives writes of leases.coordination.k8s.io in kube-system'
    )
    assert 'ValidatingWebhookConfiguration leases: webhook "leases.example.com"' in server.log.read_text()
