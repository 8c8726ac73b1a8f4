"""The admission chain, and NamespaceLifecycle over stored namespaces.

Recordings: sem-namespace-terminating, adm-ns-terminating.
"""

from __future__ import annotations

from typing import Any

import pytest

from integration.registry.conftest import MakeStore
from integration.registry.kinds import ConfigMaps, new
from tetrapod.generic.admission.chain import Chain
from tetrapod.generic.admission.interface import Attributes, Plugin
from tetrapod.generic.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from tetrapod.generic.metrics.registry import every
from tetrapod.generic.observability.exposition.text import render
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery import labels
from tetrapod.machinery.gvk import GroupVersionKind, GroupVersionResource, Object
from tetrapod.machinery.status import StatusError, bad_request
from tetrapod.machinery.user import LOOPBACK


def attributes(operation: str = "CREATE", **more: Any) -> Attributes:
    given: dict[str, Any] = {
        "kind": GroupVersionKind("", "v1", "Secret"),
        "resource": GroupVersionResource("", "v1", "secrets"),
        "subresource": "",
        "namespace": "ns",
        "name": "late",
        "object": {},
        "old_object": None,
        "options": {},
        "dry_run": False,
        "user": LOOPBACK,
        **more,
    }
    return Attributes(operation, **given)


class Recorder(Plugin):
    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log = name, log


class Mutator(Recorder):
    async def admit(self, attributes: Attributes) -> None:
        self.log.append(f"{self.name} admit")


class Validator(Recorder):
    operations = frozenset({"DELETE"})

    async def validate(self, attributes: Attributes) -> None:
        self.log.append(f"{self.name} validate")


class Both(Mutator):
    def handles(self, attributes: Attributes) -> bool:
        return attributes.name == "late"

    async def validate(self, attributes: Attributes) -> None:
        raise bad_request("no")


async def test_plugins_are_asked_in_order_in_the_phases_they_have() -> None:
    log: list[str] = []
    chain = Chain([Both("b", log), Validator("v", log), Mutator("m", log)])
    await chain.admit(attributes())
    await chain.admit(attributes(name="other"))
    assert log == ["b admit", "m admit", "m admit"]
    with pytest.raises(StatusError, match="no"):
        await chain.validate(attributes())
    log.clear()
    await chain.validate(attributes(name="other"))
    assert log == []
    await chain.validate(attributes("DELETE", name="other"))
    assert log == ["v validate"]


def test_a_chain_handles_what_any_plugin_handles() -> None:
    assert not Chain([]).handles("CREATE")
    chain = Chain([Validator("v", [])])
    assert (chain.handles("DELETE"), chain.handles("CREATE")) == (True, False)


async def test_a_plugin_may_ask_that_all_are_asked_once_more() -> None:
    log: list[str] = []

    class Eager(Mutator):
        async def admit(self, attributes: Attributes) -> None:
            await super().admit(attributes)
            attributes.reinvoke = True

    await Chain([Mutator("m", log), Eager("e", log)]).admit(attributes())
    assert log == ["m admit", "e admit", "m admit", "e admit"]


async def test_every_call_is_counted_by_plugin_phase_and_outcome() -> None:
    chain = Chain([Both("counted", [])])
    await chain.admit(attributes())
    with pytest.raises(StatusError):
        await chain.validate(attributes())
    counted = "apiserver_admission_controller_admission_duration_seconds_count"
    found = {
        line for line in render(every()).decode().splitlines() if line.startswith(counted) and 'name="counted"' in line
    }
    assert found == {
        f'{counted}{{name="counted",operation="CREATE",rejected="false",type="admit"}} 1',
        f'{counted}{{name="counted",operation="CREATE",rejected="true",type="validate"}} 1',
    }


@pytest.fixture
async def lifecycle(storages: StorageFactory, make_store: MakeStore) -> NamespaceLifecycle:
    namespaces = make_store("Namespace", "namespaces", ConfigMaps(), namespaced=False)
    await namespaces.create(Context(), new("Namespace", "ns", status={"phase": "Active"}))
    await namespaces.create(Context(), new("Namespace", "dying", status={"phase": "Terminating"}))
    return NamespaceLifecycle(storages)


async def rejected(plugin: NamespaceLifecycle, asked: Attributes) -> Object:
    with pytest.raises(StatusError) as rejection:
        await plugin.admit(asked)
    return rejection.value.to_status()


async def test_content_needs_a_namespace(lifecycle: NamespaceLifecycle) -> None:
    await lifecycle.admit(attributes())
    answer = await rejected(lifecycle, attributes(namespace="absent"))
    assert (answer["code"], answer["message"]) == (404, 'namespaces "absent" not found')
    assert answer["details"] == {"name": "absent", "kind": "namespaces"}
    await lifecycle.admit(attributes("DELETE", namespace="absent"))
    await lifecycle.admit(attributes(namespace=""))


async def test_content_of_a_namespace_that_is_gone_can_be_updated(lifecycle: NamespaceLifecycle) -> None:
    await lifecycle.admit(attributes("UPDATE", namespace="gone"))


async def test_a_dying_namespace_takes_nothing_new(lifecycle: NamespaceLifecycle) -> None:
    answer = await rejected(
        lifecycle, attributes(namespace="dying", name="", object=new("Event", generateName="late-"))
    )
    assert answer["code"] == 403
    assert answer["message"] == (
        'secrets "late-" is forbidden: unable to create new content in namespace dying because it is being terminated'
    )
    cause = {
        "reason": "NamespaceTerminating",
        "message": "namespace dying is being terminated",
        "field": "metadata.namespace",
    }
    assert answer["details"] == {"name": "late-", "kind": "secrets", "causes": [cause]}
    await lifecycle.admit(attributes("UPDATE", namespace="dying"))


async def test_some_namespaces_never_go(lifecycle: NamespaceLifecycle) -> None:
    kind, resource = GroupVersionKind("", "v1", "Namespace"), GroupVersionResource("", "v1", "namespaces")
    answer = await rejected(
        lifecycle, attributes("DELETE", kind=kind, resource=resource, name="default", namespace="default")
    )
    assert answer["message"] == 'namespaces "default" is forbidden: this namespace may not be deleted'
    await lifecycle.admit(attributes("DELETE", kind=kind, resource=resource, name="ns", namespace="ns"))


async def test_a_lister_sees_what_another_resource_stores(
    storages: StorageFactory, make_store: MakeStore, ctx: Context
) -> None:
    store = make_store("Secret", "secrets", ConfigMaps())
    await store.create(ctx, new("Secret", "a", labels={"x": "y"}))
    await store.create(Context(namespace="other"), new("Secret", "b"))
    lister = Lister(storages, StorageConfig("secrets", "v1", "Secret"))
    found = await lister.get_live("ns", "a")
    assert found is not None
    assert found["metadata"]["name"] == "a"
    assert await lister.get("ns", "b") is None
    assert [obj["metadata"]["name"] for obj in await lister.list()] == ["a", "b"]
    assert [obj["metadata"]["name"] for obj in await lister.list("other")] == ["b"]
    assert [obj["metadata"]["name"] for obj in await lister.list(selector=labels.parse("x=y"))] == ["a"]
    assert lister.storage.cached() is not None
    assert [entry.key for entry in await lister.entries()] == ["ns/a", "other/b"]
    assert [entry.key for entry in await lister.entries("other")] == ["other/b"]


async def test_a_lister_reads_the_store_until_the_cache_is_filled(storages: StorageFactory) -> None:
    lister = Lister(storages, StorageConfig("secrets", "v1", "Secret"))
    await lister.storage.create("ns/a", new("Secret", "a"))
    assert lister.storage.cached() is None
    found = await lister.get("ns", "a")
    assert found is not None
    assert found["metadata"]["name"] == "a"
    assert [obj["metadata"]["name"] for obj in await lister.list("ns")] == ["a"]
