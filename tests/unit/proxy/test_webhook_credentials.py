"""Tests of the credentials with which admission webhooks are called: users of a kubeconfig, selected by host."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tetrapod.generic.webhook.client_config import Credentials, client_config
from tetrapod.generic.webhook.credentials_by_host import CredentialsByHost

USERS = """
users:
- {name: exact.example.com:8443, user: {token: exact}}
- {name: "*.example.com", user: {token: below}}
- {name: hook.default.svc, user: {username: u, password: p}}
- {name: current, user: {tokenFile: file}}
contexts: [{name: c, context: {user: current}}]
"""


def credentials_by_host(directory: Path, more: str = "") -> CredentialsByHost:
    file = directory / "kubeconfig"
    file.write_text(f"apiVersion: v1\nkind: Config\n{USERS}{more}")
    return CredentialsByHost(str(file))


def token(credentials: Credentials | None) -> str:
    return "" if credentials is None else dict(credentials.auth_headers()).get(b"authorization", b"").decode()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://exact.example.com:8443/x", "Bearer exact"),
        ("https://exact.example.com/x", "Bearer below"),
        ("https://other.example.com:443", "Bearer below"),
        ("https://other.example.com:8443", ""),
        ("https://example.com", ""),
    ],
)
def test_the_most_specific_host_name_counts(tmp_path: Path, url: str, expected: str) -> None:
    assert token(credentials_by_host(tmp_path).credentials_for(client_config({"url": url}))) == expected


def test_services_are_named_by_their_hosts(tmp_path: Path) -> None:
    config = client_config({"service": {"namespace": "default", "name": "hook"}})
    assert token(credentials_by_host(tmp_path).credentials_for(config)) == f"Basic {base64.b64encode(b'u:p').decode()}"


def test_all_others_are_the_star_or_the_current_user(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("from a file\n")
    elsewhere = client_config({"url": "https://elsewhere"})
    assert (
        token(credentials_by_host(tmp_path, "current-context: c\n").credentials_for(elsewhere)) == "Bearer from a file"
    )
    everybody = USERS.replace("name: current,", 'name: "*",')
    (tmp_path / "kubeconfig").write_text(f"apiVersion: v1\nkind: Config\n{everybody}")
    assert token(CredentialsByHost(str(tmp_path / "kubeconfig")).credentials_for(elsewhere)) == "Bearer from a file"
