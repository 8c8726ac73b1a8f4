"""Webhooks with four separate processes: each service calls admission webhooks for its own resources, and extensions
calls conversion webhooks.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.definitions import definition, version
from support.https_client import HttpsClient
from support.services import running_services
from support.webhook import WebhookServer, allowed, webhook_server

GROUP = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/hooked.example.com/{}/namespaces/default/widgets"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    directory: Path = tmp_path_factory.mktemp("four-hooked")
    with running_services(directory) as services:
        yield HttpsClient(services.kubeconfig)


@pytest.fixture
def hook() -> Iterator[WebhookServer]:
    with webhook_server() as server:
        yield server


def convert(review: Any) -> Any:
    wanted, objects = review["request"]["desiredAPIVersion"], copy.deepcopy(review["request"]["objects"])
    for obj in objects:
        obj["apiVersion"] = wanted
        obj["spec"] = {"from": "webhook"}
    response = {"uid": review["request"]["uid"], "convertedObjects": objects, "result": {"status": "Success"}}
    return {"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": response}


def converted_by(hook: WebhookServer) -> Any:
    """Return the definition of widgets in two versions."""
    found = definition("hooked.example.com", "Widget", version("v1"), version("v2", storage=False))
    webhook = {"clientConfig": hook.config("/convert"), "conversionReviewVersions": ["v1"]}
    found["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return found


def test_every_service_calls_admission_webhooks_and_custom_resources_are_converted(
    client: HttpsClient, hook: WebhookServer
) -> None:
    hook.on("/v", allowed)
    hook.on("/convert", convert)
    rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}]
    declared = {
        "name": "v.example.com",
        "clientConfig": hook.config("/v"),
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "rules": rules,
        "objectSelector": {"matchLabels": {"hooked": "yes"}},
    }
    assert client.call("POST", CRDS, converted_by(hook)).status == 201
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "v"},
    }
    assert client.call("POST", GROUP, {**configuration, "webhooks": [declared]}).status == 201
    metadata = {"name": "hooked", "labels": {"hooked": "yes"}}
    objects: dict[str, tuple[str, dict[str, Any]]] = {
        "configmaps": ("/api/v1/namespaces/default/configmaps", {"apiVersion": "v1", "kind": "ConfigMap"}),
        "clusterroles": (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []},
        ),
        "widgets": (WIDGETS.format("v1"), {"apiVersion": "hooked.example.com/v1", "kind": "Widget", "spec": {"a": 1}}),
        "apiservices": (
            "/apis/apiregistration.k8s.io/v1/apiservices",
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "spec": {"group": "none.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1},
            },
        ),
    }
    for resource, (path, obj) in objects.items():
        name = "v1.none.example.com" if resource == "apiservices" else "hooked"
        target = f"{path}?dryRun=All"

        def asked(resource: str = resource) -> bool:
            return any(
                r["request"]["resource"]["resource"] == resource for _, _, r in hook.seen if "resource" in r["request"]
            )

        # Wait, because another service may receive the configuration or the definition later.
        reply = client.until(
            lambda r: r.status == 201 and asked(),
            "POST",
            target,
            {**obj, "metadata": {**metadata, "name": name}},
        )
        assert reply.status == 201
    client.call("POST", WIDGETS.format("v1"), {**objects["widgets"][1], "metadata": metadata})
    assert client.call("GET", WIDGETS.format("v2") + "/hooked").body["spec"] == {"from": "webhook"}
    assert client.call("GET", WIDGETS.format("v1") + "/hooked").body["spec"] == {"a": 1}
