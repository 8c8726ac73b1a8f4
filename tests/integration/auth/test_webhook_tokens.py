"""Tokens with which an API server authenticates to admission webhooks (gate APIServerWebhookAuthenticationToken)."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from support.forms import SQLITE, STOCK, serving
from support.https_client import HttpsClient, Reply

GATE: Final = "APIServerWebhookAuthenticationToken"
ACCOUNTS: Final = "/api/v1/namespaces/default/serviceaccounts"
ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
KINDS: Final = {
    "ValidatingWebhookConfiguration": f"{ADMISSION}/validatingwebhookconfigurations",
    "MutatingWebhookConfiguration": f"{ADMISSION}/mutatingwebhookconfigurations",
}
VALIDATING, MUTATING = KINDS
URL: Final = "https://hooks.example.com/check"
DENIED: Final = 'serviceaccounts/token "sender" is forbidden: token request denied'
APPS: Final = {"admissionReviewAPIGroups": ["apps"]}


def created(reply: Reply) -> dict[str, Any]:
    assert reply.status == 201, reply.body
    body: dict[str, Any] = reply.body
    return body


def configuration(kind: str, name: str) -> dict[str, Any]:
    common = {
        "rules": [
            {"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]}
        ],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "matchConditions": [{"name": "never", "expression": "false"}],
    }
    service = {"namespace": "hooks", "name": "web", "port": 8443, "path": "/check"}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": [
            {"name": "url.example.com", "clientConfig": {"url": URL}, **common},
            {"name": "service.example.com", "clientConfig": {"service": service}, **common},
            {
                "name": "root.example.com",
                "clientConfig": {"service": {"namespace": "hooks", "name": "root"}},
                **common,
                "rules": [],
            },
        ],
    }


def grant(client: HttpsClient, account: str, *groups: str) -> None:
    """Permit an account to attest API groups."""
    rule = {
        "apiGroups": ["authentication.k8s.io"],
        "resources": ["admissionReviewAPIGroups"],
        "verbs": ["attest"],
        "resourceNames": list(groups),
    }
    created(client.call("POST", f"{RBAC}/clusterroles", {"metadata": {"name": account}, "rules": [rule]}))
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": account}
    subject = {"kind": "ServiceAccount", "namespace": "default", "name": account}
    binding = {"metadata": {"name": account}, "roleRef": reference, "subjects": [subject]}
    created(client.call("POST", f"{RBAC}/clusterrolebindings", binding))


@pytest.fixture(scope="module", params=[SQLITE, STOCK])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    directory = tmp_path_factory.mktemp("webhook-tokens")
    with serving(request.param, directory, f"--feature-gates={GATE}=true") as client:
        client.until(lambda reply: reply.status == 200, "GET", "/api/v1/namespaces/default")
        for account in ("sender", "wildcard", "stranger"):
            created(client.call("POST", ACCOUNTS, {"metadata": {"name": account}}))
        grant(client, "sender", "apps", "batch")
        grant(client, "wildcard", "*")
        for kind, path in KINDS.items():
            created(client.call("POST", path, configuration(kind, "hooks")))
        reply = client.until(lambda reply: reply.status == 201, "POST", token_path("sender"), request_of(VALIDATING))
        assert reply.status == 201
        client.until(
            lambda reply: reply.status == 201, "POST", token_path("wildcard"), request_of(VALIDATING, groups=["*"])
        )
        yield client


def token_path(account: str) -> str:
    return f"{ACCOUNTS}/{account}/token"


def request_of(
    kind: str, *, name: str = "hooks", uid: str = "", audiences: tuple[str, ...] = (URL,), groups: Any = ("apps",)
) -> dict[str, Any]:
    reference = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "name": name, "uid": uid}
    return {
        "spec": {
            "audiences": list(audiences),
            "boundObjectRef": reference,
            "attestations": {"admissionReviewAPIGroups": list(groups)},
        }
    }


def claims_of(token: str) -> dict[str, Any]:
    payload = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return claims


def review(client: HttpsClient, token: str, audience: str = URL) -> dict[str, Any]:
    body = {"spec": {"token": token, "audiences": [audience]}}
    status: dict[str, Any] = created(client.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body))["status"]
    return status


@pytest.mark.parametrize("kind", [VALIDATING, MUTATING])
def test_a_token_names_the_configuration_and_its_attestation(client: HttpsClient, kind: str) -> None:
    uid = client.call("GET", f"{KINDS[kind]}/hooks").body["metadata"]["uid"]
    account = client.call("GET", f"{ACCOUNTS}/sender").body["metadata"]["uid"]
    reply = created(client.call("POST", token_path("sender"), request_of(kind, uid=uid)))
    assert reply["spec"]["expirationSeconds"] == 600, "an hour was requested by default"
    claims = claims_of(reply["status"]["token"])
    assert claims["exp"] - claims["iat"] == 600
    assert claims["aud"] == [URL]
    assert claims["kubernetes.io"] == {
        "namespace": "default",
        "serviceaccount": {"name": "sender", "uid": account},
        kind.lower(): {"name": "hooks", "uid": uid},
        "attestations": APPS,
    }
    user = review(client, reply["status"]["token"])["user"]
    assert user["username"] == "system:serviceaccount:default:sender"
    assert {key: value for key, value in user["extra"].items() if not key.endswith("/credential-id")} == {
        f"authentication.kubernetes.io/{kind.lower()}-name": ["hooks"],
        f"authentication.kubernetes.io/{kind.lower()}-uid": [uid],
        "attestation.authentication.kubernetes.io/admissionReviewAPIGroups": ["apps"],
    }


@pytest.mark.parametrize(
    ("audience", "accepted"),
    [
        (URL, True),
        (URL + "/", False),
        ("https://web.hooks.svc:8443/check", True),
        ("https://web.hooks.svc:8443/", False),
        ("https://web.hooks.svc/check", False),
        ("https://root.hooks.svc:443/", False),
        ("https://other.example.com", False),
    ],
)
def test_the_audience_is_the_address_of_a_webhook_with_a_rule_for_the_group(
    client: HttpsClient, audience: str, accepted: bool
) -> None:
    reply = client.call("POST", token_path("sender"), request_of(VALIDATING, audiences=(audience,)))
    if accepted:
        assert claims_of(created(reply)["status"]["token"])["aud"] == [audience]
    else:
        assert (reply.status, reply.message) == (403, DENIED)


def test_a_token_for_all_groups_needs_no_rule(client: HttpsClient) -> None:
    body = request_of(VALIDATING, audiences=("https://other.example.com",), groups=["*"])
    token = created(client.call("POST", token_path("wildcard"), body))["status"]["token"]
    assert claims_of(token)["kubernetes.io"]["attestations"] == {"admissionReviewAPIGroups": ["*"]}


def _with(body: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"spec": {**body["spec"], **spec}}


INVALID: Final = 'TokenRequest.authentication.k8s.io "" is invalid: spec.'


@pytest.mark.parametrize(
    ("account", "body", "status", "message"),
    [
        ("absent", request_of(VALIDATING), 404, 'serviceaccounts "absent" not found'),
        ("sender", request_of(VALIDATING, name="absent"), 403, DENIED),
        ("sender", request_of(MUTATING, name="absent"), 403, DENIED),
        ("sender", request_of(VALIDATING, groups=["batch"]), 403, DENIED),
        (
            "sender",
            request_of(MUTATING, uid="other"),
            409,
            "Operation cannot be fulfilled on MutatingWebhookConfiguration.admissionregistration.k8s.io "
            '"hooks": the UID in the bound object reference (other) does not match the UID in record. '
            "The object might have been deleted and then recreated",
        ),
        (
            "stranger",
            request_of(VALIDATING),
            403,
            'admissionReviewAPIGroups.authentication.k8s.io "apps" is forbidden: User '
            '"system:serviceaccount:default:stranger" cannot attest resource "admissionReviewAPIGroups" in API group '
            '"authentication.k8s.io" at the cluster scope',
        ),
        (
            "sender",
            request_of(VALIDATING, groups=["*"]),
            403,
            'admissionReviewAPIGroups.authentication.k8s.io "*" is forbidden: User '
            '"system:serviceaccount:default:sender" cannot attest resource "admissionReviewAPIGroups" in API group '
            '"authentication.k8s.io" at the cluster scope',
        ),
        (
            "sender",
            request_of(VALIDATING, audiences=("https://kubernetes.default.svc",)),
            400,
            "api server audiences are invalid for webhook token requests",
        ),
        (
            "sender",
            request_of(VALIDATING, audiences=(URL, "other")),
            422,
            f'{INVALID}audiences: Invalid value: ["{URL}","other"]: must be length 1 when bound to a webhook config',
        ),
        (
            "sender",
            _with(request_of(VALIDATING), attestations=None),
            422,
            f"{INVALID}attestations: Invalid value: null: webhook bound requests require exactly one "
            "admissionReviewAPIGroups attestation",
        ),
        (
            "sender",
            request_of(VALIDATING, groups=[""]),
            422,
            f'{INVALID}attestations[admissionReviewAPIGroups][0]: Invalid value: "": may not be an empty string',
        ),
        (
            "sender",
            request_of(VALIDATING, groups=["a", "b"]),
            422,
            f'{INVALID}attestations[admissionReviewAPIGroups]: Invalid value: ["a","b"]: must specify a single value',
        ),
        (
            "sender",
            _with(request_of(VALIDATING), boundObjectRef=None),
            422,
            f'{INVALID}attestations: Invalid value: {{"admissionReviewAPIGroups":["apps"]}}: attestations may only be '
            "specified with a webhook bound object reference",
        ),
    ],
)
def test_other_requests_are_rejected(
    client: HttpsClient, account: str, body: dict[str, Any], status: int, message: str
) -> None:
    reply = client.call("POST", token_path(account), body)
    assert (reply.status, reply.message) == (status, message)


@pytest.mark.parametrize("kind", [VALIDATING, MUTATING])
def test_a_token_is_invalid_without_its_configuration(client: HttpsClient, kind: str) -> None:
    path = f"{KINDS[kind]}/short"
    created(client.call("POST", KINDS[kind], configuration(kind, "short")))
    body = request_of(kind, name="short")
    reply = client.until(lambda reply: reply.status == 201, "POST", token_path("sender"), body)
    token = reply.body["status"]["token"]
    assert review(client, token).get("authenticated") is True
    first = client.call("DELETE", path)
    assert first.status == 200
    client.until(
        lambda reply: not reply.body["status"].get("authenticated"),
        "POST",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        {"spec": {"token": token, "audiences": [URL]}},
    )
    created(client.call("POST", KINDS[kind], configuration(kind, "short")))
    uid = client.call("GET", path).body["metadata"]["uid"]
    former = claims_of(token)["kubernetes.io"][kind.lower()]["uid"]
    text = f"{kind} UID ({uid}) does not match service account validating ref claim ({former})"
    client.until(
        lambda reply: text in reply.body["status"].get("error", ""),
        "POST",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        {"spec": {"token": token, "audiences": [URL]}},
    )
