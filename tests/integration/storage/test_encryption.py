"""Encrypted resources on both backends.

The store holds no plain value, stale values are encrypted again, and unreadable ones are reported. Keys change while
the server runs; a KMS plugin starts, stops and rotates its key.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from integration.storage.objects import PODS, create, pod, reached, setting, watching
from support.kms import KmsPlugin
from support.waiting import eventually
from tetrapod.generic.registry.errors import Translated, TranslatedRead
from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.cacher import Cacher, CachingStorageFactory
from tetrapod.generic.storage.encryption.encryption import Encryption
from tetrapod.generic.storage.encryption.kms import probe
from tetrapod.generic.storage.encryption.metrics import CACHE_MISSES
from tetrapod.generic.storage.encryption.transformer import TransformError
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.queries import ListQuery
from tetrapod.generic.storage.unreadable import CannotEncrypt, NotReady, NotTransformable, Unreadable
from tetrapod.generic.storage.writes import Updated
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.status import StatusError

HEAD = (
    "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [pods]\n"
    "  providers:\n"
)
RESOURCE = GroupResource("", "pods")


def key(provider: str, name: str, fill: int = 1) -> str:
    return f"  - {provider}: {{keys: [{{name: {name}, secret: {b64encode(bytes([fill]) * 32).decode()}}}]}}\n"


def kms(plugin: KmsPlugin, name: str = "plugin") -> str:
    return f"  - kms: {{apiVersion: v2, name: {name}, endpoint: {plugin.endpoint}, timeout: 1s}}\n"


UNREADABLE = (NotReady, Unreadable)
IDENTITY = "  - identity: {}\n"


class Place:
    """A store, a configuration file, and servers that use both."""

    def __init__(self, backend: Backend, root: str, directory: Path) -> None:
        self.backend, self.root, self.file = backend, root, directory / "encryption.yaml"
        self._open: list[tuple[CachingStorageFactory, Encryption | None]] = []

    async def server(self, *providers: str) -> tuple[Cacher, Encryption]:
        """Write the configuration with these providers."""
        self.configure(*providers)
        encryption = Encryption(str(self.file), reload=True)
        await encryption.start()
        factory = CachingStorageFactory(self.backend, self.root, encryption)
        self._open.append((factory, encryption))
        return factory.resource(PODS), encryption

    def plain_server(self) -> Cacher:
        """Run a server without a configuration."""
        factory = CachingStorageFactory(self.backend, self.root)
        self._open.append((factory, None))
        return factory.resource(PODS)

    def configure(self, *providers: str) -> None:
        self.file.write_text(HEAD + "".join(providers))

    async def stored(self, name: str = "a/x") -> bytes:
        kv = await self.backend.get(f"{self.root}/pods/{name}")
        assert kv is not None
        return kv.value

    async def close(self) -> None:
        for factory, encryption in self._open:
            await factory.close()
            if encryption is not None:
                await encryption.close()


@pytest_asyncio.fixture(loop_scope="session")
async def place(backend: Backend, root: str, tmp_path: Path) -> AsyncIterator[Place]:
    found = Place(backend, root, tmp_path)
    yield found
    await found.close()


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[KmsPlugin]:
    found = KmsPlugin(tmp_path)
    found.start()
    yield found
    found.stop()


async def unchanged(obj: Object | None, entry: Entry | None) -> Updated:
    assert obj is not None
    return Updated(obj)


@pytest.mark.parametrize("provider", ["aescbc", "aesgcm", "secretbox"])
async def test_stored_values_are_encrypted_and_all_operations_work(place: Place, provider: str) -> None:
    pods, _ = await place.server(key(provider, "one"), IDENTITY)
    async with watching(pods) as events:
        made = await create(pods, "a/x", hidden="treasure")
        changed = await pods.guaranteed_update("a/x", setting(more="gold"))
        assert (await place.stored()).startswith(f"k8s:enc:{provider}:v1:one:".encode())
        assert b"treasure" not in await place.stored() and b'"x"' not in await place.stored()
        await reached(pods, changed.revision)
        entry = await pods.get("a/x")
        assert entry is not None and dict(entry.labels) == {"hidden": "treasure", "more": "gold"}
        page = await pods.list(ListQuery(resource_version=str(made.revision), match="Exact"))
        assert [dict(found.labels) for found in page.entries] == [{"hidden": "treasure"}]
        await pods.delete("a/x")
        assert await events.take(3) == [("ADDED", "a/x"), ("MODIFIED", "a/x"), ("DELETED", "a/x")]
    again, _ = await place.server(key(provider, "one"), IDENTITY)
    await create(pods, "a/y", hidden="treasure")
    assert [entry.key for entry in (await again.list(ListQuery())).entries] == ["a/y"]


async def test_an_update_without_changes_encrypts_an_object_with_the_current_key(place: Place) -> None:
    old, _ = await place.server(key("aescbc", "old"))
    first = await create(old, "a/x", n="1")
    pods, _ = await place.server(key("aesgcm", "new", 2), key("aescbc", "old"))
    await reached(pods, first.revision)
    second = await pods.guaranteed_update("a/x", unchanged)
    assert second.revision > first.revision
    assert (await place.stored()).startswith(b"k8s:enc:aesgcm:v1:new:")
    assert (await pods.guaranteed_update("a/x", unchanged)).revision == second.revision
    only_new, _ = await place.server(key("aesgcm", "new", 2))
    assert [dict(entry.labels) for entry in (await only_new.list(ListQuery())).entries] == [{"n": "1"}]


async def test_encryption_is_begun_and_given_up_by_writing_everything_once(place: Place) -> None:
    plain = place.plain_server()
    await create(plain, "a/x", n="1")
    encrypting, _ = await place.server(key("secretbox", "one"), IDENTITY)
    await encrypting.guaranteed_update("a/x", unchanged)
    assert (await place.stored()).startswith(b"k8s:enc:secretbox:v1:one:")
    decrypting, _ = await place.server(IDENTITY, key("secretbox", "one"))
    await decrypting.guaranteed_update("a/x", unchanged)
    assert (await place.stored()).startswith(b'{"kind":"Pod"')


async def test_node_ports_that_a_former_version_encrypted_are_read_and_rewritten_plainly(place: Place) -> None:
    place.configure(key("aescbc", "one"))
    path = place.file
    path.write_text(path.read_text().replace("pods", "'*.*'"))
    encryption = Encryption(str(path), reload=False)
    ranges, others = GroupResource("", "servicenodeportallocations"), GroupResource("", "pods")
    encrypted = await encryption.transformer(others).to_storage(b"{}", b"/registry/ranges/servicenodeports")
    assert encrypted.startswith(b"k8s:enc:aescbc:v1:one:")
    transformer = encryption.transformer(ranges)
    assert await transformer.from_storage(encrypted, b"/registry/ranges/servicenodeports") == (b"{}", True)
    assert await transformer.to_storage(b"{}", b"/registry/ranges/servicenodeports") == b"{}"
    assert await transformer.from_storage(b"{}", b"/registry/ranges/servicenodeports") == (b"{}", False)
    await encryption.close()


def rejection(caught: pytest.ExceptionInfo[StatusError]) -> tuple[int, str, str]:
    status = caught.value.to_status()
    return status["code"], status["reason"], status["message"]


async def test_unreadable_objects_are_errors_and_others_are_served(place: Place) -> None:
    lost, _ = await place.server(key("aesgcm", "lost"))
    await create(lost, "a/x", "a/y")
    pods, _ = await place.server(key("aesgcm", "another", 2), IDENTITY)
    good = await create(pods, "a/z")
    why = (
        "data from the storage is not transformable revision=0: no matching key was found for the "
        "provided AES transformer"
    )
    with pytest.raises(StatusError) as caught, TranslatedRead(RESOURCE, "x", "get", "/pods/a/x"):
        await pods.get("a/x")
    text = f"StorageError: corrupt object, Code: 7, Key: /pods/a/x, ResourceVersion: 0, AdditionalErrorMsg: {why}"
    assert rejection(caught) == (500, "InternalError", f"Internal error occurred: {text}")
    with pytest.raises(StatusError) as caught, TranslatedRead(RESOURCE, "", "list"):
        await pods.list(ListQuery())
    text = (
        f"StorageError: corrupt object, Code: 7, Key: {place.root}/pods/a/x, ResourceVersion: 0, "
        f"AdditionalErrorMsg: {why}"
    )
    listed = f"failed to read one or more pods from the storage: {text} (and 1 more)"
    if place.backend.progress_reliable:
        assert rejection(caught) == (
            429,
            "TooManyRequests",
            f"storage is (re)initializing: failed to list <unspecified>: {listed}",
        )
    else:  # lists read the store directly
        assert rejection(caught) == (500, "StorageReadError", listed)
    entry = await pods.get("a/z", str(good.revision))
    assert entry is not None and entry.name == "z"
    with pytest.raises(StatusError), Translated(RESOURCE, "x", "delete", "/pods/a/x"):
        await pods.delete("a/x")


async def test_encrypted_values_are_rejected_without_a_configuration(place: Place) -> None:
    encrypting, _ = await place.server(key("aesgcm", "one"))
    await create(encrypting, "a/x")
    plain = place.plain_server()
    with pytest.raises(UNREADABLE, match="identity transformer tried to read encrypted data"):
        await plain.list(ListQuery())
    with pytest.raises(NotTransformable, match="identity transformer tried to read encrypted data"):
        await plain.get("a/x")


async def test_a_value_that_comes_and_cannot_be_read_ends_watches_until_it_can(place: Place) -> None:
    pods, encryption = await place.server(key("aesgcm", "one"))
    await create(pods, "a/x")
    other, _ = await place.server(key("aesgcm", "two", 2), key("aesgcm", "one"))
    async with watching(pods) as events:
        assert await events.take(1) == [("ADDED", "a/x")]
        await create(other, "a/y")
        assert await events.ends()
    with pytest.raises(UNREADABLE):
        await pods.list(ListQuery())
    await encryption.reload()  # the file with the other server's keys

    async def listed() -> list[str]:
        while True:
            try:
                return [entry.key for entry in (await pods.list(ListQuery())).entries]
            except UNREADABLE:
                await asyncio.sleep(0.05)

    assert await asyncio.wait_for(listed(), 20) == ["a/x", "a/y"]


async def test_a_changed_file_is_taken_up_and_a_broken_one_is_not(place: Place) -> None:
    pods, encryption = await place.server(key("aescbc", "one"))
    await create(pods, "a/x")
    place.file.write_text("nonsense")
    await encryption.reload()
    await create(pods, "a/y")
    assert (await place.stored("a/y")).startswith(b"k8s:enc:aescbc:v1:one:")
    place.configure(key("aesgcm", "two", 2), key("aescbc", "one"))
    await encryption.reload()
    await pods.guaranteed_update("a/x", unchanged)
    assert (await place.stored("a/x")).startswith(b"k8s:enc:aesgcm:v1:two:")


async def test_a_plugin_keeps_the_keys_and_is_asked_once_for_each(place: Place, plugin: KmsPlugin) -> None:
    pods, encryption = await place.server(kms(plugin), IDENTITY)
    await encryption.check()
    await create(pods, *(f"a/p{i}" for i in range(5)), hidden="treasure")
    assert (await place.stored("a/p0")).startswith(b"k8s:enc:kms:v2:plugin:")
    assert b"treasure" not in await place.stored("a/p0")
    misses = CACHE_MISSES.values.get((), 0)
    again, _ = await place.server(kms(plugin), IDENTITY)
    assert len((await again.list(ListQuery())).entries) == 5
    assert plugin.calls["Decrypt"] == CACHE_MISSES.values[()] - misses == 1


async def test_a_new_key_of_the_plugin_makes_what_the_old_one_sealed_stale(
    place: Place, plugin: KmsPlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "_HEALTHY_SECONDS", 0)
    pods, encryption = await place.server(kms(plugin))
    first = await create(pods, "a/x")
    assert (await pods.guaranteed_update("a/x", unchanged)).revision == first.revision
    plugin.key_id = "key-2"
    await encryption.check()
    second = await pods.guaranteed_update("a/x", unchanged)
    assert second.revision > first.revision
    assert b"key-2" in await place.stored()
    assert (await pods.guaranteed_update("a/x", unchanged)).revision == second.revision


async def test_without_its_plugin_a_server_uses_cached_keys_and_writes_for_three_minutes(
    place: Place, plugin: KmsPlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "_HEALTHY_SECONDS", 0)
    pods, encryption = await place.server(kms(plugin))
    await create(pods, "a/x")
    monkeypatch.setattr(probe, "_UNHEALTHY_SECONDS", 3600)
    plugin.stop()
    state = encryption._providers.probes[0]

    async def error_of_a_call() -> str:
        state._checked = float("-inf")
        with pytest.raises(RuntimeError) as caught:
            await encryption.check()
        return str(caught.value)

    # The poll may call the plugin at the same moment. The check then has its result.
    context = "kms-provider-0: failed to perform status section of the healthz check for KMS Provider plugin"
    text = await eventually(error_of_a_call, lambda text: text.startswith(context))
    with pytest.raises(RuntimeError) as cached:
        await encryption.check()
    assert str(cached.value) == "kms-provider-0: " + text.removeprefix(f"{context}, error: ")
    written = await create(pods, "a/y")
    monkeypatch.setattr(probe, "WRITE_SECONDS", -1.0)
    plugin.start()
    monkeypatch.setattr(probe, "_UNHEALTHY_SECONDS", 0)
    state._checked = float("-inf")
    await encryption.check()
    with pytest.raises(CannotEncrypt, match=r'encryptedDEKSource with keyID hash "sha256:[0-9a-f]{64}" expired at'):
        await create(pods, "a/z")
    entry = await pods.get("a/y", str(written.revision))
    assert entry is not None


async def test_a_plugin_that_is_not_well_is_reported(
    place: Place, plugin: KmsPlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "_HEALTHY_SECONDS", 0)
    monkeypatch.setattr(probe, "_UNHEALTHY_SECONDS", 0)
    _, encryption = await place.server(kms(plugin))
    for attribute, value, text in (
        ("healthz", "on fire", "got unexpected healthz status: on fire"),
        ("version", "v3", "expected KMSv2 API version v2, got v3"),
        (
            "version",
            "v2beta1",
            "KMSv2 API version should not change after the initial status response version v2, got v2beta1",
        ),
        ("key_id", "", 'got invalid KMSv2 KeyID hash "": keyID is empty'),
    ):
        before = getattr(plugin, attribute)
        setattr(plugin, attribute, value)
        with pytest.raises(RuntimeError) as caught:
            await encryption.check()
        assert str(caught.value) == f"kms-provider-0: kmsv2 Provider plugin is not healthy, error: {text}"
        setattr(plugin, attribute, before)
    await encryption.check()


async def test_a_configuration_whose_plugin_is_not_there_is_not_taken_up(
    place: Place, plugin: KmsPlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tetrapod.generic.storage.encryption.encryption._MIN_TIMEOUT", 0.1)
    pods, encryption = await place.server(key("aesgcm", "one"))
    plugin.stop()
    place.configure(kms(plugin), key("aesgcm", "one"))
    await encryption.reload()
    await create(pods, "a/x")
    assert (await place.stored()).startswith(b"k8s:enc:aesgcm:v1:one:")
    plugin.start()
    await encryption.reload()
    await pods.guaranteed_update("a/x", unchanged)
    assert (await place.stored()).startswith(b"k8s:enc:kms:v2:plugin:")


async def test_a_missing_plugin_does_not_block_requests_forever(place: Place, plugin: KmsPlugin) -> None:
    plugin.stop()
    pods, _ = await place.server(kms(plugin))
    with pytest.raises(CannotEncrypt, match="got unexpected nil transformer"):
        await pods.create("a/x", pod("a", "x"))


async def test_keys_that_the_plugin_does_not_know_are_rejected_with_its_error(place: Place, plugin: KmsPlugin) -> None:
    pods, _ = await place.server(kms(plugin))
    await create(pods, "a/x")
    plugin._keys.clear()
    again, _ = await place.server(kms(plugin))
    with pytest.raises(NotTransformable) as caught:
        await again.get("a/x")
    assert (
        caught.value.first.reason
        == "failed to decrypt DEK, error: rpc error: code = InvalidArgument desc = this is not mine"
    )
    assert isinstance(caught.value.__cause__, TransformError)
    assert caught.value.__cause__.status == "InvalidArgument"


async def test_an_object_whose_key_was_removed_is_not_read_from_the_cache(place: Place) -> None:
    pods, encryption = await place.server(key("aesgcm", "one"))
    await create(pods, "a/x", "a/y")
    async with watching(pods) as events:
        assert await events.take(2) == [("ADDED", "a/x"), ("ADDED", "a/y")]
        place.configure(key("aescbc", "two", 2))
        await encryption.reload()
        with pytest.raises(NotTransformable, match="no matching prefix found"):
            await pods.get("a/x")
        assert await pods.get("a/x", "0") is not None
        await pods.delete_unreadable("a/y", dry_run=True)
        with pytest.raises(NotTransformable):
            await pods.get("a/y")
        await pods.delete_unreadable("a/y", dry_run=False)
        made = await create(pods, "a/z")
        assert await events.take(2) == [("DELETED", "a/y"), ("ADDED", "a/z")]
    await reached(pods, made.revision)
    assert [await pods.get("a/y"), (await pods.get("a/z") or made).revision] == [None, made.revision]
    place.configure(key("aescbc", "two", 2), key("aesgcm", "one"))
    await encryption.reload()
    assert await pods.get("a/x") is not None
