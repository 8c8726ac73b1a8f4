"""`AggregationController`, which sets the rules of aggregated ClusterRoles to those of the roles that they select.

Rules are ordered by the selector and then by the name of the source role, without duplicates. They are written by
server-side apply as `clusterrole-aggregation-controller`.

Upstream: pkg/controller/clusterroleaggregation.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any, Final

import orjson

from tetrapod.generic.authorization.rbac_storage import RBAC_GROUP, RBAC_VERSION
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.machinery import labels
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError

log = logging.getLogger(__name__)

CLUSTER_ROLES: Final = GroupVersionResource(RBAC_GROUP, "v1", "clusterroles")
MANAGER: Final = "clusterrole-aggregation-controller"


def aggregated_rules(role: Object, all_roles: Iterable[Object]) -> list[dict[str, Any]]:
    """Return the rules that an aggregated ClusterRole should have, without duplicates. They are those of `all_roles`.

    They are ordered by the selector and then by the name of the source role.

    Args:
        role: the ClusterRole with an aggregationRule.
        all_roles: all ClusterRoles.

    Raises:
        ValueError: a label selector of the role is invalid.
    """
    rules: dict[bytes, dict[str, Any]] = {}
    ordered = sorted(all_roles, key=lambda r: str(r["metadata"]["name"]))
    for label_selector in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
        selector = labels.from_label_selector(label_selector)
        for other in ordered:
            if other["metadata"]["name"] == role["metadata"]["name"] or not selector.matches(
                other["metadata"].get("labels") or {}
            ):
                continue
            for rule in other.get("rules") or ():
                rules.setdefault(orjson.dumps(rule, option=orjson.OPT_SORT_KEYS), rule)
    return list(rules.values())


class AggregationController:
    """The controller that sets the rules of aggregated ClusterRoles to those of the roles that they select.

    `run` works until it is cancelled.
    """

    name = MANAGER

    def __init__(self, client: Client) -> None:
        self._client = client
        self._roles = Informer(client, CLUSTER_ROLES)
        self._roles.handlers.append(self._changed)
        self._queue: WorkQueue[str] = WorkQueue("clusterrole-aggregation", self._sync)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._roles.run())
            await self._roles.synced.wait()
            group.create_task(self._queue.run(2))

    def _changed(self, old: Object | None, new: Object | None) -> None:
        """Queue all aggregated roles: any change can concern any of them, and there are few.

        Args:
            old: the object before the event; None if it was added.
            new: the object after the event; None if it was deleted.
        """
        for (_, name), role in self._roles.objects.items():
            if role.get("aggregationRule") is not None:
                self._queue.add(name)
        if new is not None and new.get("aggregationRule") is not None:
            self._queue.add(new["metadata"]["name"])

    async def _sync(self, name: str) -> None:
        role = self._roles.get("", name)
        if role is None or role.get("aggregationRule") is None:
            return
        try:
            rules = aggregated_rules(role, self._roles.objects.values())
        except ValueError as error:
            log.warning("cluster role %s selects by a selector that cannot be read: %s", name, error)
            return
        if rules == (role.get("rules") or []):
            return
        patch: Object = {"apiVersion": RBAC_VERSION, "kind": "ClusterRole", "metadata": {"name": name}}
        if rules:  # without rules the field must not be owned
            patch["rules"] = rules
        try:
            await self._client.patch(CLUSTER_ROLES, "", name, patch, type="apply", fieldManager=MANAGER, force="true")
        except StatusError as error:
            if error.code != 404:
                raise
