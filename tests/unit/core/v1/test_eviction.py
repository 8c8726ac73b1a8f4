"""Tests of `pods/eviction` for pods that change between the eviction's check and the deletion."""

from __future__ import annotations

import copy
from typing import Any, cast

import orjson
import pytest

from tetrapod.core.subresources.stores import BUDGETS, PODS, Stores
from tetrapod.core.v1.pods.eviction import EvictionRest
from tetrapod.generic.client.interface import Client
from tetrapod.generic.registry.context import Context
from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.machinery import status
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError

_BUDGET: Object = {
    "kind": "PodDisruptionBudget",
    "apiVersion": "policy/v1",
    "metadata": {"name": "b", "namespace": "ns", "resourceVersion": "1"},
    "spec": {"selector": {"matchLabels": {"app": "a"}}},
    "status": {"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0},
}
_PENDING: Object = {"phase": "Pending"}
_UNREADY: Object = {"phase": "Running"}
_READY: Object = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
_BUSY = "The disruption budget b is still being processed by the server."


def entry(revision: int, pod_status: Object) -> StoredEntry:
    meta = {"name": "p", "namespace": "ns", "labels": {"app": "a"}, "resourceVersion": str(revision)}
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": meta, "status": pod_status}
    return StoredEntry.from_served("ns/p", orjson.dumps(pod), revision)


class _Pods:
    """A store of one pod. Each read returns the next of `states`, as if another client wrote between the reads."""

    def __init__(self, *states: Object) -> None:
        self._states = [entry(number, state) for number, state in enumerate(states, 1)]
        self._reads = 0
        self.deleted: Object | None = None

    async def get(self, ctx: Context, name: str) -> StoredEntry:
        self._reads += 1
        return self._states[min(self._reads, len(self._states)) - 1]

    async def update(self, ctx: Context, name: str, transform: Any, strategy: object) -> tuple[StoredEntry, bool]:
        changed = await transform(copy.deepcopy(self._states[-1].peek()))
        self._states.append(entry(len(self._states) + 1, changed["status"]))
        return self._states[-1], False

    async def delete(self, ctx: Context, name: str, options: Object, validate: None) -> None:
        version = (options.get("preconditions") or {}).get("resourceVersion")
        if version not in (None, str(self._states[-1].revision)):
            raise status.conflict(PODS, name, "modified")
        self.deleted = options


class _Budgets:
    """A store of one PodDisruptionBudget, which allows no disruption."""

    def __init__(self, **budget_status: Any) -> None:
        self._budget = {**_BUDGET, "status": {**_BUDGET["status"], **budget_status}}

    async def list(self, ctx: Context, query: object) -> Any:
        return type("Page", (), {"entries": [await self.get(ctx, "b")]})

    async def get(self, ctx: Context, name: str) -> StoredEntry:
        return StoredEntry.from_served("ns/b", orjson.dumps(self._budget), 1)


async def evict(pods: _Pods, budgets: _Budgets | None = None, **delete_options: Any) -> None:
    stores = cast(Stores, {PODS: pods, BUDGETS: budgets or _Budgets()})
    eviction = {"metadata": {"name": "p"}, "deleteOptions": delete_options}
    await EvictionRest(stores, cast(Client, None)).create(Context(namespace="ns"), "p", eviction, None, {})


async def test_a_pod_that_becomes_ready_during_its_eviction_is_kept() -> None:
    pods = _Pods(_PENDING, _READY)
    with pytest.raises(StatusError, match="violate the pod's disruption budget") as error:
        await evict(pods)
    assert error.value.code == 429
    assert pods.deleted is None


async def test_an_unready_pod_that_becomes_ready_during_its_eviction_is_kept() -> None:
    pods = _Pods(_UNREADY, _READY)
    with pytest.raises(StatusError) as error:
        await evict(pods)
    assert error.value.code == 429
    assert error.value.details == {
        "causes": [{"reason": "DisruptionBudget", "message": _BUSY}],
        "retryAfterSeconds": 10,
    }
    assert pods.deleted is None


async def test_the_eviction_of_a_pending_pod_is_repeated_after_a_conflict() -> None:
    pods = _Pods(_PENDING, _PENDING, _PENDING)
    await evict(pods)
    assert pods.deleted == {"preconditions": {"resourceVersion": "4"}}


async def test_an_unready_pod_is_deleted_at_the_version_with_its_condition() -> None:
    pods = _Pods(_UNREADY)
    await evict(pods, gracePeriodSeconds=5)
    assert pods.deleted == {"gracePeriodSeconds": 5, "preconditions": {"resourceVersion": "2"}}


async def test_a_finished_pod_is_deleted_at_any_version() -> None:
    pods = _Pods({"phase": "Failed"}, {"phase": "Failed"})
    await evict(pods)
    assert pods.deleted == {}


@pytest.mark.parametrize("state", [_PENDING, {"phase": "Failed"}])
async def test_a_version_that_the_client_names_is_checked_once(state: Object) -> None:
    pods = _Pods(state, state)
    with pytest.raises(StatusError, match="does not match the ResourceVersion in record") as error:
        await evict(pods, preconditions={"resourceVersion": "1"})
    assert error.value.code == 409
    assert pods.deleted is None


def _denied(reason: str) -> list[Object]:
    return [{"type": "DisruptionAllowed", "status": "False", "reason": reason, "message": "no"}]


@pytest.mark.parametrize(
    ("budget_status", "code", "cause"),
    [
        ({}, 429, "needs 1 healthy pods and has 1 currently"),
        ({"currentHealthy": 2}, 429, "does not allow evicting pods currently"),
        (
            {"currentHealthy": 2, "conditions": _denied("InsufficientPods")},
            429,
            "does not allow evicting pods currently (InsufficientPods): no",
        ),
        (
            {"conditions": _denied("SyncFailed")},
            429,
            "does not allow evicting pods currently because it failed sync: no",
        ),
        (
            {"disruptionsAllowed": -1},
            403,
            "does not allow evicting pods currently: pdb disruptions allowed is negative",
        ),
    ],
)
async def test_a_rejected_eviction_names_the_reason(budget_status: Object, code: int, cause: str) -> None:
    with pytest.raises(StatusError) as error:
        await evict(_Pods(_READY), _Budgets(**budget_status))
    assert error.value.code == code
    details = error.value.details or {}
    assert details["causes"] == [{"reason": "DisruptionBudget", "message": f"The disruption budget b {cause}"}]
    if code == 403:
        assert error.value.message.startswith('poddisruptionbudget.policy "b" is forbidden: ')
