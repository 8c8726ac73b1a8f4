"""Tests that the built-in admission plugins visit the containers of large pods in threads, not on the event loop."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tetrapod.core.admission.images import AlwaysPullImages
from tetrapod.core.admission.limit_ranger import LimitRanger
from tetrapod.core.admission.pod_security import PodSecurity
from tetrapod.core.admission.quota_evaluator import CoreEvaluator
from tetrapod.core.admission.runtime_class import RuntimeClass
from tetrapod.core.admission.service_account import ServiceAccount
from tetrapod.core.admission.tolerations import DefaultTolerationSeconds, ExtendedResourceToleration
from tetrapod.generic.admission.interface import Attributes
from tetrapod.generic.admission.plugins.resource_quota import ResourceQuota
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.error_limits import MAX_MESSAGE
from tetrapod.machinery.gvk import GroupVersionKind, GroupVersionResource
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.user import UserInfo

_OBJECTS: dict[str, Any] = {
    "namespaces": {"metadata": {"name": "n", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}},
    "serviceaccounts": {
        "metadata": {"name": "default", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}
    },
    "limitranges": {
        "metadata": {"name": "limits"},
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}, "max": {"memory": "1Gi"}}]},
    },
    "resourcequotas": {
        "metadata": {"name": "quota"},
        "spec": {"hard": {"requests.cpu": "1"}},
        "status": {"hard": {"requests.cpu": "1"}, "used": {"requests.cpu": "0"}},
    },
    "runtimeclasses": {
        "metadata": {"name": "r"},
        "scheduling": {"tolerations": [{"key": "a", "operator": "Exists"}]},
    },
}


class Storages:
    """The storage of each kind, with one object."""

    def resource(self, config: StorageConfig) -> Any:
        entry = SimpleNamespace(key="x", peek=lambda: _OBJECTS.get(config.prefix))

        async def get(key: str, resource_version: str = "") -> Any:
            return entry if config.prefix in _OBJECTS else None

        async def list_(query: Any) -> Any:
            return SimpleNamespace(entries=[entry] if config.prefix in _OBJECTS else [])

        return SimpleNamespace(get=get, list=list_, cached=lambda: None)


class Many(list[Any]):
    """A list that records whether the main thread visits its elements."""

    visited: set[bool]

    def __iter__(self) -> Iterator[Any]:
        self.visited.add(threading.current_thread() is threading.main_thread())
        return super().__iter__()


_STORAGES = cast(StorageFactory, Storages())
_ACCEPTING = [
    ServiceAccount(_STORAGES),
    AlwaysPullImages(),
    DefaultTolerationSeconds(300, 300),
    ExtendedResourceToleration(),
    RuntimeClass(_STORAGES),
]
_REJECTING = [LimitRanger(_STORAGES), PodSecurity(_STORAGES), ResourceQuota(_STORAGES, CoreEvaluator(_STORAGES))]


def _attributes(visited: set[bool]) -> Attributes:
    containers, tolerations = Many({"name": f"c{i}"} for i in range(20_000)), Many([{"key": "a"}, {"key": "b"}])
    containers.visited = tolerations.visited = visited
    spec = {
        "serviceAccountName": "default",
        "runtimeClassName": "r",
        "containers": containers,
        "tolerations": tolerations,
    }
    return Attributes(
        operation="CREATE",
        kind=GroupVersionKind("", "v1", "Pod"),
        resource=GroupVersionResource("", "v1", "pods"),
        subresource="",
        namespace="n",
        name="p",
        object={"metadata": {"name": "p"}, "spec": spec},
        old_object=None,
        options={},
        dry_run=False,
        user=UserInfo("u"),
        large=True,
    )


async def _admit(plugin: Any, attributes: Attributes) -> None:
    for phase in ("admit", "validate"):
        if hasattr(plugin, phase):
            await getattr(plugin, phase)(attributes)


@pytest.mark.parametrize("plugin", _ACCEPTING, ids=lambda plugin: str(plugin.name))
async def test_a_large_pod_is_admitted_in_a_thread(plugin: Any) -> None:
    visited: set[bool] = set()
    await _admit(plugin, _attributes(visited))
    assert visited == {False}


@pytest.mark.parametrize("plugin", _REJECTING, ids=lambda plugin: str(plugin.name))
async def test_a_large_pod_is_rejected_in_a_thread_with_a_bounded_message(plugin: Any) -> None:
    visited: set[bool] = set()
    with pytest.raises(StatusError) as rejected:
        await _admit(plugin, _attributes(visited))
    assert visited == {False}
    assert rejected.value.code == 403
    assert len(rejected.value.message) <= MAX_MESSAGE + 100
