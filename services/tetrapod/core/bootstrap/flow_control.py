"""Upstream's own FlowSchemas and PriorityLevelConfigurations as they are meant to be.

Upstream: pkg/registry/flowcontrol/ensurer/strategy.go and rest/storage_flowcontrol.go. What is missing is made; the mandatory ones always
have their spec; of the suggested ones it is put back while `apf.kubernetes.io/autoupdate-spec` says so, or nobody has changed them yet;
one that upstream no longer has, and that nobody took over, is removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from tetrapod.generic.among_services.names import SERVICES_GROUP
from tetrapod.generic.client.interface import Client
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError

_GROUP: Final = "flowcontrol.apiserver.k8s.io"
FLOW_SCHEMAS: Final = GroupVersionResource(_GROUP, "v1", "flowschemas")
PRIORITY_LEVELS: Final = GroupVersionResource(_GROUP, "v1", "prioritylevelconfigurations")
SERVICES_FLOW_SCHEMA: Final[Object] = {
    "metadata": {"name": "tetrapod-services", "annotations": {"apf.kubernetes.io/autoupdate-spec": "true"}},
    "spec": {
        "matchingPrecedence": 3,
        "priorityLevelConfiguration": {"name": "exempt"},
        "rules": [
            {
                "nonResourceRules": [{"nonResourceURLs": ["*"], "verbs": ["*"]}],
                "resourceRules": [{"apiGroups": ["*"], "clusterScope": True, "namespaces": ["*"], "resources": ["*"], "verbs": ["*"]}],
                "subjects": [{"group": {"name": SERVICES_GROUP}, "kind": "Group"}],
            }
        ],
    },
}
"""Where the four are apart they wait for no seat at each other's door, as upstream's server waits for none at its own."""
_MANAGER: Final = "api-priority-and-fairness-config-producer-v1"
_AUTO_UPDATE: Final = "apf.kubernetes.io/autoupdate-spec"
_MANDATORY: Final = frozenset({"exempt", "catch-all"})
_BOOLEANS: Final = {"1": True, "t": True, "true": True, "0": False, "f": False, "false": False}


class FlowControlObjects:
    """`wanted`: upstream's objects by resource."""

    def __init__(self, client: Client, wanted: dict[GroupVersionResource, Sequence[Object]]) -> None:
        self._client = client
        self._wanted = wanted

    async def ensure(self) -> None:
        await asyncio.gather(*(self._ensure_all(gvr, objects) for gvr, objects in self._wanted.items()))

    async def _ensure_all(self, gvr: GroupVersionResource, wanted: Sequence[Object]) -> None:
        page = await self._client.list(gvr)
        present = {item["metadata"]["name"]: item for item in page.get("items") or ()}
        names = {obj["metadata"]["name"] for obj in wanted}
        unwanted = [obj for name, obj in present.items() if name not in names and _auto_updated(obj) is True]
        await asyncio.gather(
            *(self._ensure(gvr, obj, present.get(obj["metadata"]["name"])) for obj in wanted),
            *(self._remove(gvr, obj) for obj in unwanted),
        )

    async def _ensure(self, gvr: GroupVersionResource, wanted: Object, current: Object | None) -> None:
        try:
            if current is None:
                await self._client.create(gvr, "", wanted, fieldManager=_MANAGER)
            elif (revised := _revised(wanted, current)) is not None:
                await self._client.update(gvr, "", revised, fieldManager=_MANAGER)
        except StatusError as error:
            if error.reason not in ("AlreadyExists", "Conflict"):  # somebody else was first: it is looked at again
                raise

    async def _remove(self, gvr: GroupVersionResource, obj: Object) -> None:
        metadata = obj["metadata"]
        preconditions = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        try:
            await self._client.delete(gvr, "", metadata["name"], {"preconditions": preconditions})
        except StatusError as error:
            if error.reason not in ("NotFound", "Conflict"):
                raise


def _revised(wanted: Object, current: Object) -> Object | None:
    """The object as it is to be; None where it is."""
    metadata = current["metadata"]
    said = _auto_updated(current)
    update = metadata["name"] in _MANDATORY or (said if said is not None else metadata.get("generation") == 1)
    spec_changed = update and not _covers(current.get("spec"), wanted["spec"])
    if said == update and not spec_changed:
        return None
    annotations = {**(metadata.get("annotations") or {}), _AUTO_UPDATE: "true" if update else "false"}
    revised = {**current, "metadata": {**metadata, "annotations": annotations}}
    return {**revised, "spec": wanted["spec"]} if spec_changed else revised


def _auto_updated(obj: Object) -> bool | None:
    value = (obj["metadata"].get("annotations") or {}).get(_AUTO_UPDATE, "")
    return _BOOLEANS.get(value.lower())


def _covers(actual: Any, expected: Any) -> bool:
    """Whether `actual` is `expected` but for fields that defaulting has added."""
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(_covers(actual.get(key), value) for key, value in expected.items())
    if isinstance(expected, list):
        return isinstance(actual, list) and len(actual) == len(expected) and all(map(_covers, actual, expected))
    return bool(actual == expected)
