"""The maintenance of upstream's own FlowSchemas and PriorityLevelConfigurations.

- Missing objects are created.
- The spec of mandatory objects is always restored.
- The spec of suggested objects is restored while `apf.kubernetes.io/autoupdate-spec` is true or, if that is unset,
  while their generation is 1.
- Objects that upstream no longer has are removed while the annotation is true.

Upstream: pkg/registry/flowcontrol/ensurer/strategy.go and rest/storage_flowcontrol.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from tetrapod.generic.client.interface import Client
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.user import SERVICES_GROUP

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
                "resourceRules": [
                    {"apiGroups": ["*"], "clusterScope": True, "namespaces": ["*"], "resources": ["*"], "verbs": ["*"]}
                ],
                "subjects": [{"group": {"name": SERVICES_GROUP}, "kind": "Group"}],
            }
        ],
    },
}
"""If the four services run as separate processes, their requests to each other are exempt, as are upstream's loopback
requests.
"""
_MANAGER: Final = "api-priority-and-fairness-config-producer-v1"
_AUTO_UPDATE: Final = "apf.kubernetes.io/autoupdate-spec"
_MANDATORY: Final = frozenset({"exempt", "catch-all"})
_BOOLEANS: Final = {"1": True, "t": True, "true": True, "0": False, "f": False, "false": False}


class FlowControlObjects:
    """The FlowSchemas and PriorityLevelConfigurations to maintain.

    Args:
        wanted: all objects that upstream has, by resource.
    """

    def __init__(self, client: Client, wanted: dict[GroupVersionResource, Sequence[Object]]) -> None:
        self._client = client
        self._wanted = wanted

    async def ensure(self) -> None:
        """List the stored objects once, and create, restore and delete those of upstream.

        - Missing objects are created.
        - The spec of `exempt` and `catch-all` is always restored. Other specs are restored while the annotation
          `apf.kubernetes.io/autoupdate-spec` is true or, if that is unset, while the generation is 1.
        - Objects that upstream no longer has are deleted while the annotation is true.

        Conflicts with other replicas are ignored; the next call checks the objects again.

        Raises:
            StatusError: the server rejected a request for another reason.
            Unavailable: the server cannot be reached.
        """
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
            # another replica was faster; the next run checks the object again
            if error.reason not in ("AlreadyExists", "Conflict"):
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
    """Return a copy of the stored object with the changes to write, or None if there is nothing to change.

    The annotation `apf.kubernetes.io/autoupdate-spec` is set to whether the object is updated automatically. If it is,
    the spec of the bootstrap object is restored.

    Args:
        wanted: the bootstrap object, with the spec to restore.
        current: the stored object, which is not modified.
    """
    metadata = current["metadata"]
    annotated = _auto_updated(current)
    auto_update = metadata["name"] in _MANDATORY or (
        annotated if annotated is not None else metadata.get("generation") == 1
    )
    spec_changed = auto_update and not _covers(current.get("spec"), wanted["spec"])
    if annotated == auto_update and not spec_changed:
        return None
    annotations = {**(metadata.get("annotations") or {}), _AUTO_UPDATE: "true" if auto_update else "false"}
    revised = {**current, "metadata": {**metadata, "annotations": annotations}}
    return {**revised, "spec": wanted["spec"]} if spec_changed else revised


def _auto_updated(obj: Object) -> bool | None:
    """Return the value of the annotation `apf.kubernetes.io/autoupdate-spec`; None if it is unset or invalid."""
    value = (obj["metadata"].get("annotations") or {}).get(_AUTO_UPDATE, "")
    return _BOOLEANS.get(value.lower())


def _covers(actual: Any, expected: Any) -> bool:
    """Return whether `actual` equals `expected`, apart from members of mappings that only `actual` has.

    Defaulting adds such members.
    """
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(_covers(actual.get(key), value) for key, value in expected.items())
    if isinstance(expected, list):
        return isinstance(actual, list) and len(actual) == len(expected) and all(map(_covers, actual, expected))
    return bool(actual == expected)
