"""Authentication and authorization configured on auth as a separate process: its decisions apply to every service."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from support.issuer import AUDIENCE, issuer
from support.kubeconfig import write_kubeconfig
from support.services import running_services
from support.waiting import until
from support.webhook import webhook_server

HEAD = {"apiVersion": "apiserver.config.k8s.io/v1"}


def ask(url: str, path: str, token: str = "", body: Any = None) -> int:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    if body is not None:
        headers["content-type"] = "application/json"
    request = urllib.request.Request(url + path, None if body is None else json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_the_configuration_of_auth_applies_to_all_services(tmp_path: Path) -> None:
    authn, authz, kubeconfig = tmp_path / "authn.yaml", tmp_path / "authz.yaml", tmp_path / "kubeconfig"
    rbac: dict[str, Any] = {"type": "RBAC", "name": "rbac"}
    with issuer() as provider, webhook_server() as hook:
        about = {"url": provider.url, "audiences": [AUDIENCE], "certificateAuthority": provider.ca}
        jwt = {
            "issuer": about,
            "claimMappings": {"username": {"claim": "sub", "prefix": ""}, "groups": {"expression": "claims.groups"}},
        }
        anonymous = {"enabled": True, "conditions": [{"path": path} for path in ("/livez", "/readyz")]}
        authn.write_text(
            yaml.safe_dump({**HEAD, "kind": "AuthenticationConfiguration", "jwt": [jwt], "anonymous": anonymous})
        )
        write_kubeconfig(kubeconfig, hook, "/authorize")

        def review(asked: Any) -> Any:
            attributes = asked["spec"].get("resourceAttributes", {})
            denied = attributes.get("resource") in ("secrets", "customresourcedefinitions", "roles")
            return {
                "apiVersion": asked["apiVersion"],
                "kind": "SubjectAccessReview",
                "status": {"allowed": False, "denied": denied},
            }

        hook.on("/authorize", review)
        webhook = {
            "timeout": "3s",
            "subjectAccessReviewVersion": "v1",
            "failurePolicy": "Deny",
            "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(kubeconfig)},
            "matchConditionSubjectAccessReviewVersion": "v1",
            "matchConditions": [{"expression": "request.groups.exists(g, g == 'readers')"}],
        }

        def configure(*authorizers: dict[str, Any]) -> None:
            authz.write_text(
                json.dumps({**HEAD, "kind": "AuthorizationConfiguration", "authorizers": list(authorizers)})
            )

        configure({"type": "Webhook", "name": "hook", "webhook": webhook}, rbac)
        files = ("--authentication-config", str(authn))
        with running_services(
            tmp_path, auth=(*files, "--authorization-config", str(authz)), aggregator=files
        ) as services:
            url = services.url
            assert ask(url, "/livez") == 200
            assert ask(url, "/version") == 401
            token = provider.token(groups=["system:masters", "readers"])
            until(lambda: ask(url, "/api/v1/pods", token), lambda status: status == 200)
            assert ask(url, "/api/v1/pods", provider.token(groups=[])) == 403
            assert ask(url, "/api/v1/pods", provider.token(groups=[], exp=1)) == 401
            # not forwarded, because behind the aggregator the name would be read as two headers
            review_myself = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
            for sub, code in (("mallory", 201), ("mallory\r\nX-Remote-Group: system:masters", 503)):
                answer = ask(
                    url,
                    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                    provider.token(sub=sub, groups=[]),
                    review_myself,
                )
                assert answer == code, sub
            # RBAC allows reading, but the webhook is asked first
            reader = provider.token(sub="rhea", groups=["readers"])
            grant(services.kubeconfig, "rhea")
            until(lambda: ask(url, "/api/v1/pods", reader), lambda status: status == 200)
            paths = (
                "/api/v1/secrets",
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                "/apis/rbac.authorization.k8s.io/v1/roles",
            )
            assert [ask(url, path, reader) for path in paths] == [403, 403, 403]
            configure(rbac)
            until(lambda: [ask(url, path, reader) for path in paths], lambda found: set(found) == {200})
            configure({"type": "Webhook", "name": "hook", "webhook": webhook}, rbac)
            until(lambda: [ask(url, path, reader) for path in paths], lambda found: set(found) == {403})


def grant(kubeconfig: Path, user: str) -> None:
    from support.https_client import HttpsClient

    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    body = {"metadata": {"name": "rhea"}, "roleRef": reference, "subjects": [{"kind": "User", "name": user}]}
    assert (
        HttpsClient(kubeconfig).call("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", body).status
        == 201
    )
