"""The controller that maintains the APIServices of local group-versions.

Those of built-in groups are created once per start ("onstart"). Those of custom resources are restored whenever they
differ ("true"). APIServices without the label of this controller are not modified.

Upstream: kube-aggregator/pkg/controllers/autoregister.
"""

from __future__ import annotations

import asyncio

from tetrapod.aggregator.apiservice import ALWAYS, APISERVICES, AUTOMANAGED, ON_START, is_available, name_for
from tetrapod.aggregator.routing import Records
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.periodic import is_rejection
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.machinery.copying import copy_object
from tetrapod.machinery.gvk import GroupVersion, Object
from tetrapod.machinery.status import StatusError


class AutoRegistration:
    """The controller that creates, updates and deletes the APIServices of local group-versions.

    Attributes:
        queue: the queue of APIService names to reconcile; the owner runs it.

    Args:
        client: writes APIServices.
        records: all APIServices.
    """

    def __init__(self, client: Client, records: Records) -> None:
        self._client = client
        self._records = records
        self._desired: dict[str, Object] = {}
        self._at_start: set[str] = set()
        self._synced: set[str] = set()
        self._pending: set[str] = set()  # wanted at the start, and not available yet
        self._all_available = asyncio.Event()
        # whether all custom resources have been listed, so that APIServices that are not wanted can be deleted
        self._complete = False
        self.queue: WorkQueue[str] = WorkQueue("apiservice-registration", self.reconcile)

    def want(self, gv: GroupVersion, priorities: tuple[int, int], *, always: bool) -> None:
        """Register a local group-version, whose APIService this controller then maintains.

        Args:
            priorities: groupPriorityMinimum and versionPriority.
            always: whether to restore the APIService whenever it differs (custom resources). If False, it is created or
                updated once per start (built-in groups).
        """
        group_priority, version_priority = priorities
        name = name_for(gv)
        spec: Object = {
            "version": gv.version,
            "groupPriorityMinimum": group_priority,
            "versionPriority": version_priority,
        }
        if gv.group:
            spec = {"group": gv.group, **spec}
        desired: Object = {
            "kind": "APIService",
            "apiVersion": "apiregistration.k8s.io/v1",
            "metadata": {"name": name, "labels": {AUTOMANAGED: ALWAYS if always else ON_START}},
            "spec": spec,
        }
        if self._desired.get(name) != desired:
            self._desired[name] = desired
            if not always:
                self._pending.add(name)
            self.queue.add(name)

    def no_longer(self, gv: GroupVersion) -> None:
        """Delete the APIService of a group-version that is no longer served locally, if `want` was called for it."""
        if self._desired.pop(name_for(gv), None) is not None:
            self.queue.add(name_for(gv))

    def complete(self) -> None:
        """Allow the deletion of APIServices for which `want` was not called, and queue all APIServices.

        It is called once all CustomResourceDefinitions have been listed, so that none is deleted by mistake.
        """
        self._complete = True
        for name in self._records.names():
            self.queue.add(name)

    def remember_start(self, names: set[str]) -> None:
        """Record the names of the APIServices that existed when this server started.

        Those with the label value "onstart" are updated only if they existed then.
        """
        self._at_start = names

    def changed(self, old: Object | None, new: Object | None) -> None:
        """Handle an event of the APIService informer: queue the APIService, and note whether it is available.

        Args:
            old: the object before the event; None if it was added.
            new: the object after the event; None if it was deleted.
        """
        obj = new or old
        if obj is None:
            return
        self.queue.add(obj["metadata"]["name"])
        if new is not None:
            self._seen(new)

    def _seen(self, obj: Object) -> None:
        if is_available(obj):
            self._no_longer_pending(obj["metadata"]["name"])

    def _no_longer_pending(self, name: str) -> None:
        self._pending.discard(name)
        if not self._pending:
            self._all_available.set()

    async def completed(self) -> None:
        """Wait until every APIService that was wanted at the start has been available once or was rejected.

        Upstream stays unready if admission rejects one, so that a user's webhook can keep a new release from starting.
        """
        for name in list(self._pending):
            if (obj := self._records.get(name)) is not None:
                self._seen(obj)
        if self._pending:
            await self._all_available.wait()

    async def check(self) -> None:
        """Implement the health check `autoregister-completion`.

        Raises:
            RuntimeError: APIServices that were wanted at the start have not been available yet.
        """
        if self._pending:
            raise RuntimeError(f"missing APIService: [{' '.join(sorted(self._pending))}]")

    async def reconcile(self, name: str) -> None:
        """Create, update or delete the APIService of this name so that it equals the desired one.

        APIServices without the label of this controller are not changed.

        Raises:
            StatusError: the write failed.
        """
        desired, current = self._desired.get(name), self._records.get(name)
        synced = name in self._synced
        try:
            await self._deconflict(name, desired, current, synced=synced)
        except StatusError as error:
            if error.reason != "Conflict" and is_rejection(error):
                self._no_longer_pending(name)
            raise
        self._synced.add(name)

    async def _deconflict(self, name: str, desired: Object | None, current: Object | None, *, synced: bool) -> None:
        if _management(desired) == ON_START and synced:
            return
        if current is None:
            if desired is not None:
                await self._create(desired)
            return
        management = _management(current)
        if not management or (management == ON_START and (name not in self._at_start or synced)):
            return
        if desired is None:
            if not self._complete:
                return
            await self._client.delete(APISERVICES, "", name, {"preconditions": {"uid": current["metadata"]["uid"]}})
        elif current["spec"] != desired["spec"]:
            changed = copy_object(current)
            changed["spec"] = copy_object(desired["spec"])
            await self._client.update(APISERVICES, "", changed)

    async def _create(self, desired: Object) -> None:
        try:
            await self._client.create(APISERVICES, "", copy_object(desired))
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise


def _management(obj: Object | None) -> str:
    """Return the automanaged label, ON_START or ALWAYS, or "" if this controller does not manage the APIService."""
    label: str = ((obj or {}).get("metadata", {}).get("labels") or {}).get(AUTOMANAGED, "")
    return label if label in (ON_START, ALWAYS) else ""
