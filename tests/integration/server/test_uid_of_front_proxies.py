"""The uid of users in identity headers, with and without the gate RemoteRequestHeaderUID.

The answers are compared with those of kube-apiserver too.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx
import pytest

from support.etcd import running_etcd
from support.failing_starts import start_error
from support.forms import ETCD, STOCK, serving_over
from support.https_client import HttpsClient, created
from support.webhook import WebhookServer, webhook_server

FLAG: Final = "--requestheader-uid-headers=X-Remote-Uid"
OFF: Final = "--feature-gates=RemoteRequestHeaderUID=false"
GROUP: Final = "uids.example.com"
TRUST: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
REVIEWS: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
KEY: Final = "requestheader-uid-headers"


@pytest.fixture(scope="module")
def extension() -> Iterator[WebhookServer]:
    with webhook_server() as server:
        server.on(f"/apis/{GROUP}/v1", lambda _: {"kind": "APIResourceList", "groupVersion": f"{GROUP}/v1"})
        server.on(f"/apis/{GROUP}/v1/things", lambda _: {"kind": "ThingList", "items": []})
        yield server


def reached(client: HttpsClient, extension: WebhookServer) -> dict[str, str]:
    """Register the extension API server, send it a request of a user with a uid, and return the headers it gets."""
    service = {"metadata": {"name": "uids"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    created(client, "/api/v1/namespaces/default/services", service)
    spec = {
        "group": GROUP,
        "version": "v1",
        "groupPriorityMinimum": 10,
        "versionPriority": 10,
        "insecureSkipTLSVerify": True,
        "service": {"namespace": "default", "name": "uids", "port": extension.port},
    }
    body = {"metadata": {"name": f"v1.{GROUP}"}, "spec": spec}
    created(client, "/apis/apiregistration.k8s.io/v1/apiservices", body)
    rule = {"apiGroups": [GROUP], "resources": ["things"], "verbs": ["list"]}
    created(client, "/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "u"}, "rules": [rule]})
    binding = {
        "metadata": {"name": "u"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "u"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "carol"}],
    }
    created(client, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    carol = client.with_headers({"Impersonate-User": "carol", "Impersonate-Uid": "u1", "X-Remote-Uid": "other"})
    carol.until(lambda reply: reply.status == 200, "GET", f"/apis/{GROUP}/v1/things", timeout=60)
    # The server also asks for /apis/GROUP/v1, to see whether the extension is available.
    requests = [headers for line, headers, _ in extension.seen if line == f"GET /apis/{GROUP}/v1/things"]
    headers = requests[-1]
    return {name: value for name, value in headers.items() if name in ("x-remote-user", "x-remote-uid")}


def user_of_front_proxy(client: HttpsClient, pki: Path) -> dict[str, str]:
    """Return the name and the uid of the user that a front proxy names in the headers of a request."""
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    context.load_cert_chain(pki / "front-proxy-client.crt", pki / "front-proxy-client.key")
    headers = {"X-Remote-User": "carol", "X-Remote-Uid": "u1", "X-Remote-Group": "readers"}
    with httpx.Client(verify=context) as front:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        answer = front.post(f"{client.url}{REVIEWS}", json=review, headers=headers)
    assert answer.status_code == 201, answer.text
    user = answer.json()["status"]["userInfo"]
    return {key: value for key, value in user.items() if key in ("username", "uid")}


@pytest.mark.parametrize("form", [ETCD, STOCK])
def test_the_uid_is_passed_and_read_only_with_the_gate(tmp_path: Path, form: str, extension: WebhookServer) -> None:
    with running_etcd(tmp_path / "etcd") as etcd:
        with serving_over(etcd, form, tmp_path / "server", FLAG) as client:
            trust = client.until(lambda reply: reply.status == 200, "GET", TRUST, timeout=30).body["data"]
            assert json.loads(trust[KEY]) == ["X-Remote-Uid"]
            assert reached(client, extension) == {"x-remote-user": "carol", "x-remote-uid": "u1"}
            assert user_of_front_proxy(client, tmp_path / "server/pki") == {"username": "carol", "uid": "u1"}
            client.call("DELETE", f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{GROUP}")
            client.call("DELETE", "/api/v1/namespaces/default/services/uids")
            for kind in ("clusterroles", "clusterrolebindings"):
                client.call("DELETE", f"/apis/rbac.authorization.k8s.io/v1/{kind}/u")
        with serving_over(etcd, form, tmp_path / "server", OFF) as client:
            written = client.until(lambda reply: KEY not in reply.body["data"], "GET", TRUST, timeout=60).body["data"]
            assert json.loads(written["requestheader-username-headers"]) == ["X-Remote-User"]
            assert reached(client, extension) == {"x-remote-user": "carol"}
            assert user_of_front_proxy(client, tmp_path / "server/pki") == {"username": "carol"}


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ((OFF, FLAG), '--requestheader-uid-headers requires the "RemoteRequestHeaderUID" feature to be enabled'),
        (
            ("--requestheader-uid-headers=X-Uid",),
            "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation "
            "will not work",
        ),
        (("--requestheader-uid-headers=X-Remote-Uid, ",), 'empty value in "requestheader-uid-headers"'),
        (("--requestheader-group-headers= ,X",), 'empty value in "requestheader-group-headers"'),
    ],
)
def test_names_of_headers_are_checked(tmp_path: Path, flags: tuple[str, ...], text: str) -> None:
    assert text in start_error(tmp_path, *flags)
