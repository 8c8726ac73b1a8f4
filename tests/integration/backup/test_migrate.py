"""Migration between a data directory and etcd, in both directions: complete and unchanged."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from click.testing import Result

from support.etcd import Etcd
from support.https_client import HttpsClient
from support.server import running
from tetrapod.generic.storage.backup.contents import BackupError, Contents, Item
from tetrapod.generic.storage.backup.converting import converted
from tetrapod.generic.storage.backup.reading import read_sqlite
from tetrapod.generic.storage.etcd.backend import EtcdBackend
from tetrapod.generic.storage.sqlite import SqliteBackend
from tetrapod.machinery.protobuf.envelope import encode, envelope

pytestmark = pytest.mark.long

Command = Callable[..., Result]
MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": "täglich"}}


def test_a_server_is_migrated_to_etcd_and_back(tmp_path: Path, tetrapod: Command, etcd: Etcd, prefix: str) -> None:
    with running(tmp_path / "first") as server:
        client = HttpsClient(server.kubeconfig)
        made = client.call("POST", MAPS, config_map("one")).body
        token = client.call("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {}}).body[
            "status"
        ]["token"]
        rejected = tetrapod("migrate", "--from", tmp_path / "first", "--to", etcd.url, "--to-prefix", prefix)
        assert (rejected.exit_code, "is in use by process" in rejected.output) == (1, True)
        latest = int(client.call("GET", MAPS).body["metadata"]["resourceVersion"])
    moved = tetrapod("migrate", "--from", tmp_path / "first", "--to", etcd.url, "--to-prefix", prefix)
    assert moved.exit_code == 0, moved.output
    with running(tmp_path / "first", "--etcd-servers", etcd.url, "--etcd-prefix", prefix) as server:
        client = HttpsClient(server.kubeconfig)
        found = client.call("GET", f"{MAPS}/one").body
        assert (found["metadata"]["uid"], found["data"]) == (made["metadata"]["uid"], made["data"])
        assert int(found["metadata"]["resourceVersion"]) > latest
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        assert client.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review).body["status"][
            "authenticated"
        ]
        watch = client.call("GET", f"{MAPS}?watch=true&timeoutSeconds=5&resourceVersion={latest}").body
        assert (watch["type"], watch["object"]["code"]) == ("ERROR", 410)
        assert client.call("POST", MAPS, config_map("two")).status == 201
    back = tetrapod("migrate", "--from", etcd.url, "--from-prefix", prefix, "--to", tmp_path / "second")
    assert back.exit_code == 0, back.output
    with running(tmp_path / "second") as server:
        client = HttpsClient(server.kubeconfig)
        again = client.call("GET", f"{MAPS}/one").body
        assert again["metadata"] == found["metadata"]  # including its resource version
        assert {item["metadata"]["name"] for item in client.call("GET", MAPS).body["items"]} >= {"one", "two"}


def test_protobuf_is_converted_to_json_and_what_cannot_be_read_is_rejected() -> None:
    pod = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}, "data": {"x": "y"}}
    unknown = envelope("example.com/v1", "Thing", b"")
    yaml = b"apiVersion: v1\ndata: {x: 'y'}\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n"
    items = [Item("configmaps/b/a", encode(pod), 5, 5), Item("masterleases/10.0.0.1", b"{}", 6, 6)]
    found = converted(Contents("etcd", 9, [*items, Item("configmaps/b/y", yaml, 7, 7)]), keep_encrypted=False)
    assert [item.key for item in found.items] == ["configmaps/b/a", "configmaps/b/y"]
    assert json.loads(found.items[1].value) == pod
    assert found.items[0].value == (
        b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"b"},"data":{"x":"y"}}'
    )
    neither = "neither JSON, protobuf, CBOR nor YAML"
    for value, message in ((unknown, "Thing"), (b"\x00\x01", neither), (b"k8s\x00\xff", "things/a")):
        with pytest.raises(BackupError, match=message):
            converted(Contents("etcd", 9, [Item("things/a", value, 5, 5)]), keep_encrypted=False)
    with pytest.raises(BackupError, match=r"configmaps/a/b: .* not a JSON object"):
        converted(Contents("etcd", 9, [Item("configmaps/a/b", b'{"apiVersion":"v1"', 5, 5)]), keep_encrypted=False)


def test_encrypted_values_are_migrated_only_with_the_option(tmp_path: Path, tetrapod: Command) -> None:
    async def fill() -> None:
        backend = SqliteBackend(tmp_path / "old.d" / "tetrapod.db")
        await backend.put_if("/registry/secrets/a/b", b"k8s:enc:secretbox:v1:key:\xfe", 0)
        await backend.close()

    (tmp_path / "old.d").mkdir()
    asyncio.run(fill())
    move = ("migrate", "--from", tmp_path / "old.d", "--to", tmp_path / "new")
    done = tetrapod(*move)
    assert (done.exit_code, "secrets/a/b" in done.output, "--encryption-provider-config" in done.output) == (
        1,
        True,
        True,
    )
    assert tetrapod(*move, "--keep-encrypted").exit_code == 0


def configuration(path: Path, provider: str, key: str, *resources: str) -> Path:
    named = f"{{name: {key}, secret: {b64encode(key.encode().ljust(32, b'.')).decode()}}}"
    path.write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n"
        f"- {{resources: [{', '.join(resources)}], providers: [{provider}: {{keys: [{named}]}}, identity: {{}}]}}\n"
    )
    return path


def test_source_and_target_have_separate_encryption(tmp_path: Path, tetrapod: Command, etcd: Etcd, prefix: str) -> None:
    """From one key to another provider, and to none. AES-GCM binds a value to its key in the store, which differs."""
    first = configuration(tmp_path / "first.yaml", "aesgcm", "first", "secrets", "configmaps", "services")
    second = configuration(tmp_path / "second.yaml", "secretbox", "second", "secrets")
    flags = ("--from-encryption-provider-config", "--to-encryption-provider-config")
    secrets = "/api/v1/namespaces/default/secrets"
    with running(tmp_path / "one", f"--encryption-provider-config={first}") as server:
        client = HttpsClient(server.kubeconfig)
        secret = client.call("POST", secrets, {"metadata": {"name": "s"}, "stringData": {"p": "q"}}).body
        assert client.call("POST", MAPS, config_map("m")).status == 201
    move = ("migrate", "--from", tmp_path / "one", "--to", etcd.url, "--to-prefix", prefix)
    wrong = tetrapod(*move, flags[0], second)
    assert wrong.exit_code == 1
    assert "configmaps/default/m: identity transformer tried to read encrypted data" in wrong.output, wrong.output
    both = tetrapod(*move, flags[0], first, "--keep-encrypted")
    assert both.exit_code == 2
    moved = tetrapod(*move, flags[0], first, flags[1], second)
    assert moved.exit_code == 0, moved.output
    assert etcd.value(f"{prefix}/secrets/default/s").startswith(b"k8s:enc:secretbox:v1:second:")
    assert etcd.value(f"{prefix}/configmaps/default/m").startswith(b"{")
    assert etcd.value(f"{prefix}/services/specs/default/kubernetes").startswith(b"{")
    with running(
        tmp_path / "two",
        f"--etcd-servers={etcd.url}",
        f"--etcd-prefix={prefix}",
        f"--encryption-provider-config={second}",
    ) as server:
        client = HttpsClient(server.kubeconfig)
        found = client.call("GET", f"{secrets}/s").body
        assert (found["metadata"]["uid"], found["data"]) == (secret["metadata"]["uid"], secret["data"])
    back = tetrapod(
        "migrate", "--from", etcd.url, "--from-prefix", prefix, flags[0], second, "--to", tmp_path / "plain"
    )
    assert back.exit_code == 0, back.output
    plain = read_sqlite(tmp_path / "plain" / "tetrapod.db", "/registry", "embedded")
    assert plain.encrypted == 0
    assert (
        next(orjson.loads(item.value) for item in plain.items if item.key == "secrets/default/s")["data"]
        == secret["data"]
    )


async def test_a_concurrent_write_is_detected(
    etcd: Etcd, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write between the reading of the source and the end."""
    from tetrapod.apps import stores
    from tetrapod.cli.migrate import move

    source, target = stores.Store(etcd.url, prefix=prefix), stores.Store(str(tmp_path))
    backend = EtcdBackend([etcd.url])
    try:
        await backend.put_if(f"{prefix}/pods/a/b", b"{}", 0)
        write = stores.Store.write

        async def busy(self: stores.Store, contents: Contents) -> int:
            await backend.put_if(f"{prefix}/pods/a/c", b"{}", 0)
            return await write(self, contents)

        monkeypatch.setattr(stores.Store, "write", busy)
        with pytest.raises(BackupError, match="somebody wrote"):
            await move(source, target, keep_encrypted=False)
    finally:
        await backend.close()
