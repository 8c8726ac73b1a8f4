"""The extensions that an administrator has configured: policies, admission and conversion webhooks, and an audit log.

Each concerns a namespace of its own, so that it does not change what the other cases measure.
"""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any, Final

from stall.client import Client
from support.definitions import definition, version
from support.webhook import WebhookServer, allowed

GROUP: Final = "stall.example.com"
HOOKED: Final = "hooked"
"""The namespace whose objects are sent to a validating and a mutating webhook."""
PATCHED: Final = "patched"
"""The namespace of a mutating webhook that patches."""
AUDITED: Final = "audited"
"""The namespace whose requests and responses are written to the audit log."""
CONVERTED: Final = f"/apis/{GROUP}/v1/namespaces/stall/converteds"
AUDIT_POLICY: Final = f"""apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: RequestResponse
  namespaces: [{AUDITED}]
- level: None
"""
_BINDINGS: Final = 50
_MAPS: Final = 1000
_EACH: Final = "object.data.all(k, object.data[k].size() < 1000)"
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"

POLICIES: Final[dict[str, dict[str, Any]]] = {
    "each": {"validations": [{"expression": _EACH}]},
    "pairs": {"validations": [{"expression": "object.data.all(k, object.data.exists(l, l == k + 'x'))"}]},
    "patterns": {"validations": [{"expression": "object.data.all(k, k.matches('^[a-z0-9]+(-[a-z0-9]+)*$'))"}]},
    "slow-pattern": {"validations": [{"expression": "object.data.all(k, !object.data[k].matches('a[ab]{999}c'))"}]},
    "formats": {"validations": [{"expression": "object.data.all(k, '%s'.format([object.data]) != k)"}]},
    "messages": {"validations": [{"expression": "false", "messageExpression": "object.data.map(k, k).join(', ')"}]},
    "variables": {
        "variables": [{"name": "keys", "expression": "object.data.map(k, k + object.data[k])"}],
        "validations": [{"expression": "variables.keys.all(k, k.size() < 100)"}],
        "auditAnnotations": [{"key": "keys", "valueExpression": "string(variables.keys.size())"}],
    },
    "conditions": {
        "matchConditions": [{"name": "each", "expression": "object.data.exists(k, object.data[k] == 'x')"}],
        "validations": [{"expression": "true"}],
    },
    "bindings": {"validations": [{"expression": _EACH}]},
    "labels": {"mutations": "Object{metadata: Object.metadata{labels: {'keys': string(object.data.size())}}}"},
}
"""The policies by name; that of a `mutations` is an expression of a mutating policy."""


async def prepare(admin: Client, webhooks: WebhookServer) -> None:
    """Create the policies, webhooks, definitions, namespaces and objects."""
    names = (*(f"policy-{name}" for name in POLICIES), HOOKED, PATCHED, AUDITED)
    for name in names:
        await _create(admin, "/api/v1/namespaces", {"metadata": {"name": name}})
        await _grant(admin, name)
    path = f"/api/v1/namespaces/{AUDITED}/configmaps"
    maps = [("POST", path, {"metadata": {"name": f"m{i}"}, "data": {"a": "b" * 200}}) for i in range(_MAPS)]
    await asyncio.gather(*(admin.ask_all(maps[start::20]) for start in range(20)))
    await _convert(admin, webhooks)
    for name, spec in POLICIES.items():
        await _bind(admin, name, spec)
    await _hook(admin, webhooks)
    await asyncio.sleep(2)  # admission plugins read their configurations


def _namespaces(*names: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(names)}]}


async def _bind(admin: Client, name: str, spec: dict[str, Any]) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}
    constraints = {"resourceRules": [rule], "namespaceSelector": _namespaces(f"policy-{name}")}
    if "mutations" in spec:
        kind = "mutatingadmissionpolic"
        mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": spec["mutations"]}}
        spec = {"mutations": [mutation], "reinvocationPolicy": "Never"}
        actions = {}
    else:
        kind, actions = "validatingadmissionpolic", {"validationActions": ["Deny", "Audit"]}
    body = {"metadata": {"name": name}, "spec": {"failurePolicy": "Fail", "matchConstraints": constraints, **spec}}
    await _create(admin, f"{_ADMISSION}/{kind}ies", body)
    for number in range(_BINDINGS if name == "bindings" else 1):
        binding = {"metadata": {"name": f"{name}-{number}"}, "spec": {"policyName": name, **actions}}
        await _create(admin, f"{_ADMISSION}/{kind}ybindings", binding)


async def _hook(admin: Client, webhooks: WebhookServer) -> None:
    patch = base64.b64encode(json.dumps([{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]).encode())

    def allow(review: Any) -> Any:
        webhooks.seen.clear()
        return allowed(review)

    def change(review: Any) -> Any:
        webhooks.seen.clear()
        return allowed(review, patch=patch.decode(), patchType="JSONPatch")

    webhooks.on("/allow", allow)
    webhooks.on("/change", change)
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
    for kind, name, namespace in (
        ("validating", "allow", HOOKED),
        ("mutating", "allow", HOOKED),
        ("mutating", "change", PATCHED),
    ):
        webhook = {
            "name": f"{name}.{GROUP}",
            "clientConfig": webhooks.config(f"/{name}"),
            "rules": [rule],
            "namespaceSelector": _namespaces(namespace),
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        await _create(
            admin, f"{_ADMISSION}/{kind}webhookconfigurations", {"metadata": {"name": name}, "webhooks": [webhook]}
        )


async def _convert(admin: Client, webhooks: WebhookServer) -> None:
    def convert(review: Any) -> Any:
        webhooks.seen.clear()
        request = review["request"]
        objects = [{**obj, "apiVersion": request["desiredAPIVersion"]} for obj in request["objects"]]
        response = {"uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"}}
        return {"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": response}

    webhooks.on("/convert", convert)
    body = definition(GROUP, "Converted", version(), version("v2", storage=False))
    webhook = {"clientConfig": webhooks.config("/convert"), "conversionReviewVersions": ["v1"]}
    body["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    await _create(admin, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
    for _ in range(200):
        if (await admin.ask("GET", CONVERTED)).status == 200:
            break
        await asyncio.sleep(0.1)
    head = {"apiVersion": f"{GROUP}/v1", "kind": "Converted", "x": ["a"] * 50}
    objects = [("POST", CONVERTED, {**head, "metadata": {"name": f"c{i}"}}) for i in range(_MAPS)]
    await asyncio.gather(*(admin.ask_all(objects[start::20]) for start in range(20)))


async def _create(admin: Client, path: str, body: dict[str, Any]) -> None:
    outcome = await admin.ask("POST", path, body)
    assert outcome.status in (201, 409), (path, outcome.status, outcome.body)


async def _grant(admin: Client, namespace: str) -> None:
    """Give the unprivileged user the rights to ConfigMaps of a namespace."""
    base = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]
    await _create(admin, f"{base}/roles", {"metadata": {"name": "member"}, "rules": rules})
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "user"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "member"}
    body = {"metadata": {"name": "member"}, "subjects": [subject], "roleRef": role}
    await _create(admin, f"{base}/rolebindings", body)
