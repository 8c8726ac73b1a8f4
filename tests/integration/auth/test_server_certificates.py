"""Client certificates of the operator's CAs, in addition to the server's own: for users and for front proxies."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.chains import subordinate
from support.failing_starts import failed_start
from support.https_client import HttpsClient
from support.server import Server, running
from support.waiting import until
from tetrapod.generic.certificates.authority import Authority

REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
ASKED = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


@dataclass
class Trusting:
    server: Server
    users: Authority
    proxies: Authority
    anchored: Authority
    """An intermediate certificate in the bundle for users, which is a trust anchor although it is not a root."""
    directory: Path

    def whoami(self, issued: tuple[bytes, ...], **headers: str) -> Any:
        pair = self.directory / "pair.pem"
        pair.write_bytes(b"".join(issued))
        context = ssl.create_default_context(cafile=str(self.server.ca))
        context.check_hostname = False
        context.load_cert_chain(pair)
        address = urlsplit(self.server.url)
        connection = http.client.HTTPSConnection(str(address.hostname), address.port, context=context, timeout=30)
        with contextlib.closing(connection):
            connection.request("POST", REVIEW, json.dumps(ASKED), {"content-type": "application/json", **headers})
            answer = connection.getresponse()
            found = json.loads(answer.read())
        return found["status"]["userInfo"] if answer.status == 201 else answer.status


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trusting]:
    directory = tmp_path_factory.mktemp("trusting")
    users, proxies = Authority.create("users"), Authority.create("proxies")
    anchored = subordinate(Authority.create("a root that nobody here knows"), "anchored")
    (directory / "users.crt").write_bytes(users.certificate_pem + anchored.certificate_pem)
    (directory / "proxies.crt").write_bytes(proxies.certificate_pem)
    flags = (f"--client-ca-file={directory}/users.crt", f"--requestheader-client-ca-file={directory}/proxies.crt")
    with running(directory, *flags, "--requestheader-allowed-names=front") as server:
        yield Trusting(server, users, proxies, anchored, directory)


def test_a_certificate_of_the_configured_ca_authenticates_its_user(trusting: Trusting) -> None:
    found = trusting.whoami(trusting.users.issue_client("eve", ["readers"]))
    assert found["username"] == "eve"
    assert found["groups"] == ["readers", "system:authenticated"]


def under(*authorities: Authority, user: str = "eve") -> tuple[bytes, ...]:
    """Return the certificate that the last authority issued, followed by the chain of the others from below."""
    certificate, key = authorities[-1].issue_client(user)
    return (certificate, *(authority.certificate_pem for authority in reversed(authorities)), key)


def test_a_certificate_chain_is_verified_up_to_a_trust_anchor(trusting: Trusting) -> None:
    middle = subordinate(trusting.users, "middle")
    lower = subordinate(middle, "lower")
    assert trusting.whoami(under(middle))["username"] == "eve"
    assert trusting.whoami(under(middle, lower, user="adam"))["username"] == "adam"
    assert trusting.whoami(under(lower)) == 401  # one certificate is missing
    # another authority of the same name
    assert trusting.whoami(under(subordinate(Authority.create("users"), "middle"))) == 401
    assert trusting.whoami(under(subordinate(trusting.users, "no authority", ca=False))) == 401


@pytest.mark.parametrize("identity", [{}, {"X-Remote-User": "carol", "X-Remote-Group": "system:masters"}])
def test_an_unknown_certificate_is_401_unless_a_token_is_valid(trusting: Trusting, identity: dict[str, str]) -> None:
    token = (
        HttpsClient(trusting.server.kubeconfig).call("POST", f"{ACCOUNTS}/default/token", {}).body["status"]["token"]
    )
    for name in ("users", "proxies", "strangers"):
        stranger = Authority.create(name).issue_client("front", ["system:masters"])
        assert trusting.whoami(stranger, **identity) == 401
        assert trusting.whoami(stranger, Authorization="Bearer wrong", **identity) == 401
        assert (
            trusting.whoami(stranger, Authorization=f"Bearer {token}", **identity)["username"]
            == "system:serviceaccount:default:default"
        )


def test_expired_or_invalid_chains_are_401(trusting: Trusting) -> None:
    assert trusting.whoami(trusting.users.issue_client("eve", life=timedelta(minutes=-1))) == 401
    assert trusting.whoami(trusting.users.issue_server("eve", ["localhost"])) == 401


def test_an_intermediate_is_a_trust_anchor_without_its_root(trusting: Trusting) -> None:
    assert trusting.whoami(trusting.anchored.issue_client("eve"))["username"] == "eve"


def test_user_and_proxy_authorities_are_separate(trusting: Trusting) -> None:
    identity = {"X-Remote-User": "carol", "X-Remote-Group": "system:masters"}
    assert (
        trusting.whoami(under(subordinate(trusting.users, "middle"), user="front"), **identity)["username"] == "front"
    )
    assert (
        trusting.whoami(under(subordinate(trusting.proxies, "middle"), user="front"), **identity)["username"] == "carol"
    )
    assert trusting.whoami(under(subordinate(trusting.proxies, "middle"), user="eve")) == 401


def test_the_generated_admin_kubeconfig_keeps_working(trusting: Trusting) -> None:
    assert (
        "system:masters"
        in HttpsClient(trusting.server.kubeconfig).call("POST", REVIEW, ASKED).body["status"]["userInfo"]["groups"]
    )


def test_only_the_allowed_proxy_may_set_identity_headers(trusting: Trusting) -> None:
    identity = {"X-Remote-User": "carol", "X-Remote-Group": "readers"}
    assert trusting.whoami(trusting.proxies.issue_client("front"), **identity)["username"] == "carol"
    assert trusting.whoami(trusting.proxies.issue_client("other"), **identity) in (401, 403)
    assert trusting.whoami(trusting.users.issue_client("front"), **identity)["username"] == "front"


def test_an_authority_removed_from_the_bundle_is_rejected(trusting: Trusting) -> None:
    bundle, held = trusting.directory / "users.crt", trusting.users.issue_client("eve")
    assert trusting.whoami(held)["username"] == "eve"
    others = Authority.create("others")
    bundle.write_bytes(others.certificate_pem)
    until(lambda: trusting.whoami(held) == 401)
    # The listener may reload the file later than the authenticator.
    found = until(lambda: trusting.whoami(others.issue_client("mallory")), lambda answer: answer != 401)
    assert found["username"] == "mallory"


@pytest.mark.parametrize("content", ["", "no certificate"])
def test_an_empty_bundle_is_rejected_at_start(content: str, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text(content)
    failed = failed_start(tmp_path / "data", f"--client-ca-file={tmp_path}/ca.crt")
    assert failed.code == 1
    assert "--client-ca-file" in failed.stderr
