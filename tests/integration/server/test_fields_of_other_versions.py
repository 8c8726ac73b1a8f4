"""Admission that changes an object in a version that lacks some of its fields.

The answers are compared with those of kube-apiserver too.
"""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from support.forms import SQLITE, STOCK, serving
from support.webhook import webhook_server

GROUP: Final = "certificates.k8s.io"
REQUESTS: Final = f"/apis/{GROUP}/v1beta1/namespaces/default/podcertificaterequests"
CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
FLAGS: Final = (f"--runtime-config={GROUP}/v1beta1=true", "--disable-admission-plugins=NodeRestriction")


def request(name: str) -> dict[str, Any]:
    """Return a PodCertificateRequest of v1beta1 with the two fields that v1 lacks."""
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    spec = {
        "signerName": "example.com/signer",
        "podName": "p",
        "podUID": "uid-of-pod",
        "serviceAccountName": "s",
        "serviceAccountUID": "uid-of-account",
        "nodeName": "n",
        "nodeUID": "uid-of-node",
        "maxExpirationSeconds": 86400,
        "pkixPublicKey": b64encode(public).decode(),
        "proofOfPossession": b64encode(key.sign(b"uid-of-pod")).decode(),
    }
    return {"metadata": {"name": name}, "spec": spec}


def label(review: Any) -> dict[str, Any]:
    """Return the response of a webhook that labels an object with the version in which it gets it."""
    obj = review["request"]["object"]
    value = {"version": obj["apiVersion"].replace("/", ".")}
    patch = b64encode(json.dumps([{"op": "add", "path": "/metadata/labels", "value": value}]).encode()).decode()
    response = {"uid": review["request"]["uid"], "allowed": True, "patchType": "JSONPatch", "patch": patch}
    return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}


def configuration(client_config: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of a webhook that sees PodCertificateRequests in v1."""
    rule = {
        "apiGroups": [GROUP],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["podcertificaterequests"],
    }
    webhook = {
        "name": "label.example.com",
        "rules": [rule],
        "clientConfig": client_config,
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {"metadata": {"name": "label"}, "webhooks": [webhook]}


@pytest.mark.parametrize("form", [SQLITE, STOCK])
def test_fields_that_the_version_of_a_webhook_lacks_are_kept(form: str, tmp_path: Path) -> None:
    with webhook_server() as server, serving(form, tmp_path, *FLAGS) as client:
        server.on("/label", label)
        reply = client.call("POST", CONFIGURATIONS, configuration(server.config("/label")))
        assert reply.status == 201, reply.body
        path = f"{REQUESTS}?dryRun=All"
        client.until(lambda reply: "labels" in reply.body["metadata"], "POST", path, request("r"), timeout=60)
        created = request("r")
        reply = client.call("POST", REQUESTS, created)
        assert reply.status == 201, reply.body
        assert reply.body["metadata"]["labels"] == {"version": "certificates.k8s.io.v1"}
        kept = {name: reply.body["spec"][name] for name in ("pkixPublicKey", "proofOfPossession")}
        assert kept == {name: created["spec"][name] for name in kept}
