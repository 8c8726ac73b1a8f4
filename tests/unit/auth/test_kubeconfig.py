"""Tests of webhook kubeconfig files: paths, credentials, and errors in client-go's wording."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import pytest

from tetrapod.generic.webhook.kubeconfig import read_kubeconfig

GOOD = """
current-context: x
contexts: [{name: x, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://hook.example:8443/ask?a=b"%s}}]
users: [{name: u, user: {%s}}]
"""
NOTHING = (
    "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
)


def write(tmp_path: Path, text: str) -> str:
    (tmp_path / "kubeconfig").write_text(text)
    return str(tmp_path / "kubeconfig")


def test_server_and_credentials_are_read(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("the CA")
    (tmp_path / "token").write_text(" secret\n")
    target = read_kubeconfig(
        write(tmp_path, GOOD % (", certificate-authority: ca.crt, tls-server-name: other", "tokenFile: token"))
    )
    assert (target.endpoint.host, target.endpoint.port, target.path, target.host) == (
        "hook.example",
        8443,
        "/ask?a=b",
        "hook.example:8443",
    )
    assert target.endpoint.tls is not None
    assert (target.endpoint.tls.ca_data, target.endpoint.tls.server_name) == ("the CA", "other")
    assert target.auth_headers() == [(b"authorization", b"Bearer secret")]
    basic = read_kubeconfig(write(tmp_path, GOOD % ("", "username: a, password: b")))
    assert basic.auth_headers() == [(b"authorization", b"Basic " + base64.b64encode(b"a:b"))]


def test_inline_keys_are_not_readable_by_other_users(tmp_path: Path) -> None:
    pem = base64.b64encode(b"pem").decode()
    target = read_kubeconfig(write(tmp_path, GOOD % ("", f"client-certificate-data: {pem}, client-key-data: {pem}")))
    assert target.endpoint.tls is not None
    key = Path(target.endpoint.tls.key)
    assert (key.read_bytes(), stat.S_IMODE(key.stat().st_mode)) == (b"pem", 0o600)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", NOTHING),
        ("clusters: [{name: c, cluster: {server: 'https://x'}}]", NOTHING),
        (
            "current-context: x",
            "invalid configuration: [context was not found for specified context: x, cluster has no server defined]",
        ),
        (
            GOOD % (", certificate-authority: /nope", "client-certificate: /nope2"),
            "invalid configuration: [client-key-data or client-key must be specified for u to use the clientCert "
            "authentication method., unable to read client-cert /nope2 for u due to open /nope2: no such file or "
            "directory, unable to read certificate-authority /nope for c due to open /nope: no such file or directory]",
        ),
        (
            GOOD % ("", "token: a, username: b"),
            (
                "invalid configuration: more than one authentication method found for u; found [token basicAuth], "
                "only one is allowed"
            ),
        ),
    ],
)
def test_errors_have_client_gos_messages(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError) as rejected:
        read_kubeconfig(write(tmp_path, text))
    assert str(rejected.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("clusters: 3", "json: cannot unmarshal number into Go struct field Config.clusters of type []v1.NamedCluster"),
        ("clusters: [{cluster: {certificate-authority-data: '###'}}]", "illegal base64 data at input byte 0"),
        (
            "kind: Foo\napiVersion: v1",
            'no kind "Foo" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
        ),
        ("[x", "yaml: line 1: did not find expected ',' or ']'"),
    ],
)
def test_other_files_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ValueError) as rejected:
        read_kubeconfig(path)
    assert str(rejected.value) == f'error loading config file "{path}": {message}'


@pytest.mark.parametrize("url", ["http://proxy:3128", "socks5://proxy:1080", "nonsense"])
def test_a_proxy_of_the_cluster_is_rejected_instead_of_ignored(tmp_path: Path, url: str) -> None:
    with pytest.raises(ValueError) as rejected:
        read_kubeconfig(write(tmp_path, GOOD % (f", proxy-url: '{url}'", "token: a")))
    assert (
        str(rejected.value)
        == 'cluster "c" has a proxy-url, which is not supported: the server must be reached directly'
    )


@pytest.mark.parametrize("field", ["as: jane", "as-uid: u", "as-groups: [a]", "as-user-extra: {a: [b]}"])
def test_impersonation_is_rejected_instead_of_ignored(tmp_path: Path, field: str) -> None:
    with pytest.raises(ValueError) as rejected:
        read_kubeconfig(write(tmp_path, GOOD % ("", f"token: a, {field}")))
    name = field.partition(":")[0]
    assert str(rejected.value) == f"users with the field {name} cannot be used: impersonation is not supported"
