"""Test of a stock kube-apiserver and our server taking turns over one etcd with the same EncryptionConfiguration.

With every provider, each reads what the other encrypted, detects stale values and rewrites them.
"""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from support.definitions import definition
from support.etcd import Etcd, running_etcd
from support.kms import KmsPlugin
from support.kube_apiserver import running_over
from support.server import Server, running
from support.stock import binaries
from support.wire import Client

pytestmark = [pytest.mark.stock, pytest.mark.timeout(300)]

SPACE = "/api/v1/namespaces/default"
KINDS = {
    f"{SPACE}/secrets": b"k8s:enc:aescbc:v1:{key}:",
    f"{SPACE}/configmaps": b"k8s:enc:secretbox:v1:{key}:",
    f"{SPACE}/serviceaccounts": b"k8s:enc:aesgcm:v1:{key}:",
    "/apis/coordination.k8s.io/v1/namespaces/default/leases": b"k8s:enc:kms:v2:vault:",
    "/apis/example.com/v1/namespaces/default/chests": b"k8s:enc:kms:v2:vault:",
}
PREFIXES = {"leases": "leases/default", "chests": "example.com/chests/default"}
CRD = definition("example.com", "Chest")


def configure(path: Path, plugin: KmsPlugin, *names: str) -> None:
    """Write a configuration with keys of these names; the first key is used for writing."""
    keys = ", ".join(f"{{name: {name}, secret: {b64encode(name.encode().ljust(32, b'.')).decode()}}}" for name in names)
    path.write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n"
        f"- {{resources: [secrets], providers: [aescbc: {{keys: [{keys}]}}]}}\n"
        f"- {{resources: [configmaps], providers: [secretbox: {{keys: [{keys}]}}]}}\n"
        f"- {{resources: [serviceaccounts], providers: [aesgcm: {{keys: [{keys}]}}]}}\n"
        f"- {{resources: ['*.*'], providers: [kms: {{apiVersion: v2, name: vault, endpoint: '{plugin.endpoint}'}}]}}\n"
    )


class Turns:
    def __init__(self, directory: Path, etcd: Etcd, plugin: KmsPlugin) -> None:
        self.etcd, self.plugin = etcd, plugin
        self.config, self.tokens = directory / "encryption.yaml", directory / "tokens.csv"
        self.tokens.write_text('admin-token,admin,u-admin,"system:masters"\n')
        self._directory = directory

    @property
    def flags(self) -> tuple[str, ...]:
        return f"--encryption-provider-config={self.config}", f"--token-auth-file={self.tokens}"

    def stock(self) -> Any:
        # in the format in which Tetrapod stores its objects
        flags = ("--storage-media-type=application/json", *self.flags)
        return running_over(self.etcd.url, binaries()["kube-apiserver"], self._directory / "stock", *flags)

    def ours(self) -> Any:
        return running(self._directory / "ours", f"--etcd-servers={self.etcd.url}", *self.flags)

    def stored(self, path: str, name: str) -> bytes:
        resource = path.rpartition("/")[2]
        return self.etcd.value(f"/registry/{PREFIXES.get(resource, f'{resource}/default')}/{name}")


def make_all(server: Server, name: str) -> None:
    with Client(server) as client:
        for path in KINDS:
            body: Any = {"metadata": {"name": name, "labels": {"made": name}}}
            if path.endswith("chests"):
                body |= {"apiVersion": "example.com/v1", "kind": "Chest"}
                while client("GET", path).status == 404:  # its definition must be established first
                    continue
            answer = client("POST", path, body)
            assert answer.status == 201, answer.body


def read_all(server: Server, *names: str) -> None:
    with Client(server) as client:
        for path in KINDS:
            while (
                answer := client("GET", f"{path}?labelSelector=made")
            ).status == 429:  # its cache must be loaded first
                continue
            assert answer.status == 200, answer.body
            assert [item["metadata"]["name"] for item in answer.json["items"]] == sorted(names)


def rewrite_all(server: Server, name: str) -> None:
    """Write every object back unchanged, as `kubectl replace` does, so that only its encryption changes."""
    with Client(server) as client:
        for path in KINDS:
            found = client("GET", f"{path}/{name}").json
            answer = client("PUT", f"{path}/{name}", found)
            assert answer.status == 200, answer.body
            again = client("PUT", f"{path}/{name}", answer.json)
            assert again.json["metadata"]["resourceVersion"] == answer.json["metadata"]["resourceVersion"]


def check_stored(turns: Turns, name: str, key: str, kms_key: str) -> None:
    """Check the keys of all objects of a name.

    A value encrypted by KMS has the id of its key in plain text behind the prefix.
    """
    for path, prefix in KINDS.items():
        value = turns.stored(path, name)
        assert value.startswith(prefix.replace(b"{key}", key.encode())), path
        assert b"kms" not in prefix or kms_key.encode() in value, path


def test_each_server_reads_values_of_the_other_and_follows_key_rotation(tmp_path: Path) -> None:
    binaries()
    plugin = KmsPlugin(tmp_path)
    plugin.start()
    try:
        with running_etcd(tmp_path / "etcd") as etcd:
            turns = Turns(tmp_path, etcd, plugin)
            configure(turns.config, plugin, "old")
            with turns.stock() as stock:
                with Client(stock) as client:
                    assert client("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD).status == 201
                make_all(stock, "by-stock")
            configure(turns.config, plugin, "new", "old")
            plugin.key_id = "key-2"
            with turns.ours() as ours:
                read_all(ours, "by-stock")
                rewrite_all(ours, "by-stock")
                make_all(ours, "by-us")
            check_stored(turns, "by-stock", "new", "key-2")
            check_stored(turns, "by-us", "new", "key-2")
            configure(turns.config, plugin, "newest", "new", "old")
            plugin.key_id = "key-3"
            with turns.stock() as stock:
                read_all(stock, "by-stock", "by-us")
                rewrite_all(stock, "by-us")
            check_stored(turns, "by-us", "newest", "key-3")
            with turns.ours() as ours:
                read_all(ours, "by-stock", "by-us")
    finally:
        plugin.stop()
