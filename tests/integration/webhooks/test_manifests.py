"""Webhooks and policies in manifest files (`staticManifestsDir`): their effects, reloads, errors and reserved names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.failing_starts import failed_start
from support.https_client import HttpsClient, Reply
from support.server import running
from support.services import running_services
from support.waiting import until
from support.webhook import WebhookServer, allowed, answered, json_patch, webhook_server

pytestmark = pytest.mark.long

GROUP = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PLUGINS = {
    "ValidatingAdmissionWebhook": "WebhookAdmissionConfiguration",
    "MutatingAdmissionWebhook": "WebhookAdmissionConfiguration",
    "ValidatingAdmissionPolicy": "ValidatingAdmissionPolicyConfiguration",
    "MutatingAdmissionPolicy": "MutatingAdmissionPolicyConfiguration",
}
METRICS = "apiserver_manifest_admission_config_controller"


def configured(directory: Path, *plugins: str) -> str:
    """Write an AdmissionConfiguration with a directory of manifests for each plugin, and return the flag."""
    entries = []
    for plugin in plugins:
        (directory / plugin).mkdir(exist_ok=True)
        configuration = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": PLUGINS[plugin],
            "staticManifestsDir": str(directory / plugin),
        }
        entries.append({"name": plugin, "configuration": configuration})
    file = directory / "admission.yaml"
    head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration"}
    file.write_text(json.dumps({**head, "plugins": entries}))
    return f"--admission-control-config-file={file}"


def rule(*resources: str, group: str = "") -> dict[str, Any]:
    return {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": list(resources)}


ANNOTATE = {
    "matchConstraints": {"resourceRules": [rule("configmaps")]},
    "reinvocationPolicy": "Never",
    "mutations": [
        {
            "patchType": "ApplyConfiguration",
            "applyConfiguration": {"expression": "Object{metadata: Object.metadata{annotations: {'from': 'policy'}}}"},
        }
    ],
}


def manifest(kind: str, name: str, **fields: Any) -> Any:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": f"{name}.static.k8s.io"},
        **fields,
    }


def webhooks(kind: str, server: WebhookServer, path: str, *rules: Any) -> Any:
    hook = {
        "name": f"{path[1:]}.example.com",
        "clientConfig": server.config(path),
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "rules": list(rules),
    }
    return manifest(f"{kind}WebhookConfiguration", path[1:], webhooks=[hook])


def policy(name: str, message: str, *rules: Any, expression: str = "object.metadata.name != 'bad'") -> list[Any]:
    """Return a ValidatingAdmissionPolicy that rejects objects named `bad`, and its binding."""
    spec = {
        "matchConstraints": {"resourceRules": list(rules)},
        "validations": [{"expression": expression, "message": message}],
    }
    binding = {"policyName": f"{name}.static.k8s.io", "validationActions": ["Deny"]}
    return [
        manifest("ValidatingAdmissionPolicy", name, spec=spec),
        manifest("ValidatingAdmissionPolicyBinding", name, spec=binding),
    ]


def write(file: Path, *objects: Any) -> None:
    """Replace a manifest file by one with these objects, one document each."""
    new = file.with_suffix(".new")
    new.write_text("---\n".join(f"{json.dumps(obj)}\n" for obj in objects))
    new.rename(file)


@dataclass
class Configured:
    """A server whose four plugins have a directory of manifests each, and the webhook server that they name."""

    client: HttpsClient
    directory: Path
    hook: WebhookServer

    def create(self, name: str, **metadata: Any) -> Reply:
        return self.client.call("POST", f"{CONFIG_MAPS}?dryRun=All", {"metadata": {"name": name, **metadata}})

    def reloads(self, plugin: str, status: str) -> float:
        samples = self._samples("automatic_reloads_total", plugin)
        return sum(float(sample.rpartition(" ")[2]) for sample in samples if f'status="{status}"' in sample)

    def hashes(self, plugin: str) -> list[str]:
        return [
            sample.partition(',hash="')[2].partition('"')[0] for sample in self._samples("last_config_info", plugin)
        ]

    def _samples(self, metric: str, plugin: str) -> list[str]:
        lines = self.client.call("GET", "/metrics").body.splitlines()
        return [line for line in lines if line.startswith(f"{METRICS}_{metric}{{") and f'plugin="{plugin}"' in line]


@pytest.fixture(scope="module")
def hook() -> Iterator[WebhookServer]:
    with webhook_server() as server:
        server.on("/reject", lambda review: answered(review, allowed=False, status={"message": "rejected from a file"}))
        label = {"op": "add", "path": "/metadata/labels", "value": {"from": "file"}}
        server.on("/label", lambda review: allowed(review, **json_patch(label)))
        yield server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, hook: WebhookServer) -> Iterator[Configured]:
    directory = tmp_path_factory.mktemp("manifests")
    flag = configured(directory, *PLUGINS)
    rules = [rule("secrets"), rule("validatingwebhookconfigurations", group="admissionregistration.k8s.io")]
    write(directory / "ValidatingAdmissionWebhook/a.yaml", webhooks("Validating", hook, "/reject", *rules))
    write(directory / "ValidatingAdmissionPolicy/a.yaml", *policy("first", "from a file", rule("configmaps")))
    with running(directory / "data", flag) as process:
        yield Configured(HttpsClient(process.kubeconfig), directory, hook)


def test_manifests_apply_from_the_start(server: Configured) -> None:
    assert server.create("good").status == 201
    answer = server.create("bad")
    assert (answer.status, answer.message) == (
        422,
        "configmaps \"bad\" is forbidden: ValidatingAdmissionPolicy 'first.static.k8s.io' with binding "
        "'first.static.k8s.io' denied request: from a file",
    )
    secret = server.client.call("POST", "/api/v1/namespaces/default/secrets?dryRun=All", {"metadata": {"name": "s"}})
    assert (secret.status, secret.message) == (
        400,
        'admission webhook "reject.example.com" denied the request: rejected from a file',
    )


def test_webhooks_in_manifests_protect_webhook_configurations(server: Configured) -> None:
    path = f"{GROUP}/validatingwebhookconfigurations?dryRun=All"
    answer = server.client.call("POST", path, {"metadata": {"name": "mine"}})
    assert (answer.status, answer.message) == (
        400,
        'admission webhook "reject.example.com" denied the request: rejected from a file',
    )


def test_policies_in_manifests_protect_policies(server: Configured) -> None:
    file = server.directory / "ValidatingAdmissionPolicy/protect.yml"
    rules = rule("mutatingadmissionpolicies", group="admissionregistration.k8s.io")
    write(file, *policy("protect", "no policies", rules, expression="false"))

    def create() -> Reply:
        path = f"{GROUP}/mutatingadmissionpolicies?dryRun=All"
        return server.client.call("POST", path, {"metadata": {"name": "m"}, "spec": ANNOTATE})

    answer = until(create, lambda reply: reply.status == 422)
    assert answer.message.endswith("denied request: no policies")
    file.unlink()
    until(create, lambda reply: reply.status == 201)


def test_mutating_webhooks_and_policies_are_added_changed_and_removed(server: Configured) -> None:
    hooks = server.directory / "MutatingAdmissionWebhook/label.json"
    items = [webhooks("Mutating", server.hook, "/label", rule("configmaps"))]
    write(hooks, {"apiVersion": "v1", "kind": "List", "items": items})
    until(lambda: server.create("a").body["metadata"].get("labels"), lambda labels: labels == {"from": "file"})
    policies = server.directory / "MutatingAdmissionPolicy/annotate.yaml"
    binding = manifest("MutatingAdmissionPolicyBinding", "m", spec={"policyName": "m.static.k8s.io"})
    write(policies, manifest("MutatingAdmissionPolicy", "m", spec=ANNOTATE), binding)
    annotated = until(lambda: server.create("a").body["metadata"], lambda metadata: metadata.get("annotations"))
    assert (annotated["labels"], annotated["annotations"]) == ({"from": "file"}, {"from": "policy"})
    hooks.unlink()
    policies.unlink()
    until(
        lambda: server.create("a").body["metadata"],
        lambda metadata: "annotations" not in metadata and "labels" not in metadata,
    )


def test_policies_of_the_api_apply_beside_those_in_manifests(server: Configured) -> None:
    body = policy("api", "from the API", rule("configmaps"), expression="object.metadata.name != 'worse'")
    for obj, resource in zip(body, ("validatingadmissionpolicies", "validatingadmissionpolicybindings"), strict=True):
        obj["metadata"]["name"] = "api"
        if "policyName" in obj["spec"]:
            obj["spec"]["policyName"] = "api"
        assert server.client.call("POST", f"{GROUP}/{resource}", obj).status == 201
    until(lambda: server.create("worse").message, lambda message: message.endswith("denied request: from the API"))
    assert server.create("bad").message.endswith("denied request: from a file")


def test_an_invalid_reload_keeps_the_manifests_and_is_counted(server: Configured) -> None:
    plugin = "ValidatingAdmissionPolicy"
    before, failures = server.hashes(plugin), server.reloads(plugin, "failure")
    assert len(before) == 1
    file = server.directory / plugin / "broken.yaml"
    write(file, *policy("broken", "never", rule("configmaps"), expression="nonsense"))
    until(lambda: server.reloads(plugin, "failure"), lambda count: count > failures)
    assert server.hashes(plugin) == before
    assert server.create("bad").message.endswith("denied request: from a file")
    successes = server.reloads(plugin, "success")
    write(file, *policy("broken", "mended", rule("configmaps"), expression="object.metadata.name != 'new'"))
    until(lambda: server.create("new").message, lambda message: message.endswith("denied request: mended"))
    assert server.hashes(plugin) != before
    assert server.reloads(plugin, "success") == successes + 1


def test_each_of_four_services_reads_its_manifests(tmp_path: Path) -> None:
    flag = configured(tmp_path, "ValidatingAdmissionPolicy")
    rules = [rule("configmaps"), rule("roles", group="rbac.authorization.k8s.io")]
    write(tmp_path / "ValidatingAdmissionPolicy/a.yaml", *policy("apart", "from a file", *rules))
    with running_services(tmp_path / "services", core=(flag,), auth=(flag,)) as services:
        client = HttpsClient(services.kubeconfig)
        for path in (CONFIG_MAPS, "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"):
            answer = client.call("POST", f"{path}?dryRun=All", {"metadata": {"name": "bad"}})
            assert (answer.status, answer.message.rpartition(": ")[2]) == (422, "from a file"), answer


@pytest.mark.parametrize("enabled", [True, False])
def test_names_of_manifests_are_reserved_while_the_gate_is_on(tmp_path: Path, enabled: bool) -> None:
    text = (
        'names ending with ".static.k8s.io" are reserved for static manifest-based configurations and cannot be '
        "managed via the API"
    )
    with running(tmp_path, f"--feature-gates=ManifestBasedAdmissionControlConfig={str(enabled).lower()}") as process:
        client = HttpsClient(process.kubeconfig)
        obj = {"metadata": {"name": "a.static.k8s.io"}}
        answer = client.call("POST", f"{GROUP}/mutatingwebhookconfigurations", obj)
        if enabled:
            assert answer.status == 422
            assert answer.message.endswith(f'metadata.name: Invalid value: "a.static.k8s.io": {text}')
        else:
            assert answer.status == 201
            quoted = text.replace('"', '\\"')
            assert answer.warnings == [f'299 - "metadata.name: {quoted}"']


@pytest.mark.parametrize(
    ("plugin", "file", "gate", "error"),
    [
        (
            "ValidatingAdmissionPolicy",
            policy("lonely", "m", rule("configmaps"))[1],
            "true",
            'failed to initialize admission plugin "ValidatingAdmissionPolicy": failed to load static policy manifests '
            'from "DIR": binding "lonely.static.k8s.io" references policy "lonely.static.k8s.io" which does not exist '
            "in the manifest directory",
        ),
        (
            "MutatingAdmissionWebhook",
            {"kind": "Pod", "apiVersion": "v1"},
            "true",
            'failed to initialize admission plugin "MutatingAdmissionWebhook": failed to load static webhook manifests '
            'from "DIR": error loading DIR/a.yaml: no kind "Pod" is registered for version "v1" in scheme '
            '"pkg/runtime/scheme.go:111"',
        ),
        (
            "ValidatingAdmissionWebhook",
            {},
            "false",
            'couldn\'t init admission plugin "ValidatingAdmissionWebhook": staticManifestsDir: Forbidden: '
            "staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled",
        ),
    ],
)
def test_unusable_manifests_end_the_start(tmp_path: Path, plugin: str, file: Any, gate: str, error: str) -> None:
    flag = configured(tmp_path, plugin)
    write(tmp_path / plugin / "a.yaml", file)
    failed = failed_start(tmp_path / "data", flag, f"--feature-gates=ManifestBasedAdmissionControlConfig={gate}")
    expected = f"Error: failed to apply admission: {error.replace('DIR', str(tmp_path / plugin))}"
    assert (failed.code, failed.error) == (1, expected)
