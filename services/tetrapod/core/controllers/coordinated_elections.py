"""Coordinated leader election: the controller that elects leaders among LeaseCandidates, and the cleaner of these.

Each process of a component creates a LeaseCandidate. The controller asks the candidates to renew it (pingTime), and
writes the best of those that did into the Lease. Its holder renews the Lease itself.
Upstream: pkg/controlplane/controller/leaderelection
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from tetrapod.core.controllers.election_rules import best_leader, best_strategy
from tetrapod.core.coordination.lease_candidates import OLDEST
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.leaderelection.lock import LEASES
from tetrapod.generic.client.periodic import every
from tetrapod.generic.client.reflector import Key
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.machinery.copying import copy_object
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import format_micro, now, parse

log = logging.getLogger(__name__)

CANDIDATES: Final = GroupVersionResource("coordination.k8s.io", "v1beta1", "leasecandidates")
_REQUEUE_SECONDS: Final = 5.0
"""Seconds until a Lease is looked at again, to notice that it is not renewed."""
_LEASE_SECONDS: Final = 5
_ELECTION: Final = timedelta(seconds=5)
"""The time that candidates have to renew after they were asked."""
_VALIDITY: Final = timedelta(minutes=30)
"""The time after its renewal for which a LeaseCandidate is valid."""
_CLEANING_SECONDS: Final = 1800.0


class ElectionController:
    """The controller that elects the holders of Leases among LeaseCandidates.

    Args:
        client: reads and writes Leases and LeaseCandidates.
        clock: returns the current time.
    """

    name = "leader-election-controller"

    def __init__(self, client: Client, clock: Callable[[], datetime] = now) -> None:
        self._client, self._clock = client, clock
        self._leases = Informer(client, LEASES)
        self._candidates = Informer(client, CANDIDATES)
        self._queue: WorkQueue[Key] = WorkQueue(self.name, self._sync)
        self._leases.handlers.append(self._on_lease)
        self._candidates.handlers.append(self._on_candidate)

    async def run(self) -> None:
        """Follow Leases and LeaseCandidates until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._leases.run())
            group.create_task(self._candidates.run())
            await self._leases.synced.wait()
            await self._candidates.synced.wait()
            group.create_task(self._queue.run())

    def _on_lease(self, old: Object | None, new: Object | None) -> None:
        metadata = (new or old or {})["metadata"]
        self._queue.add((metadata["namespace"], metadata["name"]))

    def _on_candidate(self, old: Object | None, new: Object | None) -> None:
        candidate = new or old or {}
        if not _awaits_renewal(candidate):  # otherwise an election is in progress already
            self._queue.add((candidate["metadata"]["namespace"], candidate["spec"]["leaseName"]))

    async def _sync(self, key: Key) -> None:
        """Take the next step of an election: do nothing, ask the candidates to renew, or write the Lease.

        Args:
            key: the namespace and the name of the Lease.

        Raises:
            StatusError, Unavailable: a request failed. The step is repeated.
        """
        if candidates := self._valid_candidates(key):
            try:
                again = await self._step(key, candidates)
            except ValueError as error:
                log.error("%s: election of %s/%s: %s", self.name, *key, error)
                again = True
            if again:
                self._queue.add_after(key, _REQUEUE_SECONDS)

    async def _step(self, key: Key, candidates: Sequence[Object]) -> bool:
        """Take the next step of an election with valid candidates, and return whether to look at the Lease again.

        Raises:
            ValueError: the candidates disagree about the strategy, or none has valid versions.
        """
        moment = self._clock()
        if not self._is_needed(key, candidates, moment):
            return True
        asked = [candidate for candidate in candidates if self._must_be_asked(candidate, moment)]
        for candidate in asked:
            renewal = copy_object(candidate)
            renewal["spec"]["pingTime"] = format_micro(moment)
            await self._client.update(CANDIDATES, key[0], renewal)
        if asked or any(_is_waited_for(candidate, moment) for candidate in candidates):
            return True
        renewed = [candidate for candidate in candidates if _was_renewed(candidate, moment)]
        if not renewed:
            log.error("%s: election of %s/%s: no available candidates", self.name, *key)
            return False
        strategy, name = best_strategy(renewed), ""
        if strategy == OLDEST:
            if (leader := best_leader(renewed)) is None:
                raise ValueError("should not happen, could not find suitable electee")
            name = leader["metadata"]["name"]
        await self._write(key, strategy, name)
        return True

    def _valid_candidates(self, key: Key) -> list[Object]:
        namespace, name = key
        oldest = self._clock() - _VALIDITY
        return [
            candidate
            for (candidate_namespace, _), candidate in self._candidates.objects.items()
            if candidate_namespace == namespace
            and candidate["spec"]["leaseName"] == name
            and not is_expired(candidate, oldest)
        ]

    def _is_needed(self, key: Key, candidates: Sequence[Object], moment: datetime) -> bool:
        """Return whether the Lease needs an election.

        It does if it is missing, expired or without a holder, if a candidate was not renewed for 15 minutes, or if its
        holder is not the best candidate.

        Raises:
            ValueError: the candidates disagree about the strategy.
        """
        lease = self._leases.get(*key)
        if lease is None or _lease_is_expired(lease, moment) or not lease["spec"].get("holderIdentity"):
            return True
        if any(is_expired(candidate, moment - _VALIDITY / 2) for candidate in candidates):
            return True
        if best_strategy(candidates) != OLDEST:
            return False
        leader = best_leader(candidates)
        return leader is not None and leader["metadata"]["name"] != lease["spec"]["holderIdentity"]

    @staticmethod
    def _must_be_asked(candidate: Object, moment: datetime) -> bool:
        """Return whether a candidate must be asked to renew.

        It is not asked if it was renewed recently, is waited for, or has never renewed since it was asked.
        """
        if _was_renewed(candidate, moment) or _is_waited_for(candidate, moment):
            return False
        ping = candidate["spec"].get("pingTime")
        return not ping or (parse(ping) + _ELECTION < moment and not _awaits_renewal(candidate))

    async def _write(self, key: Key, strategy: str, leader: str) -> None:
        """Write the result of an election into the Lease, which is created if it is missing.

        A holder whose Lease is valid is asked to give way (preferredHolder).

        Args:
            key: the namespace and the name of the Lease.
            strategy: the strategy of the election.
            leader: the name of the elected candidate; "" if another controller elects by this strategy.
        """
        namespace, name = key
        fresh: Object = {"leaseDurationSeconds": _LEASE_SECONDS, "renewTime": format_micro(self._clock())}
        if leader:
            fresh["holderIdentity"] = leader
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}
        try:
            await self._client.create(LEASES, namespace, {**lease, "spec": {**fresh, "strategy": strategy}})
        except StatusError as error:
            if error.code != 409:
                raise
        else:
            log.info("%s: created lease %s/%s for %s", self.name, namespace, name, leader or "no leader")
            return
        existing = await self._client.get(LEASES, namespace, name)
        spec = existing.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        changed = {**spec, "strategy": strategy}
        if leader and leader != holder:
            if not holder or _lease_is_expired(existing, self._clock()):
                changed = {**changed, **fresh}
                changed.pop("preferredHolder", None)
                changed.pop("acquireTime", None)
            else:
                changed["preferredHolder"] = leader
        if changed != spec:
            log.info("%s: lease %s/%s held by %r: elected %r", self.name, namespace, name, holder, leader)
            await self._client.update(LEASES, namespace, {**existing, "spec": changed})


class CandidateCleaner:
    """The controller that deletes LeaseCandidates which were not renewed for 30 minutes."""

    name = "leasecandidate-garbage-collector"

    def __init__(self, client: Client, period: float = _CLEANING_SECONDS, clock: Callable[[], datetime] = now) -> None:
        """Create the controller. `period` is the pause between two cleanings in seconds."""
        self._client, self._period, self._clock = client, period, clock

    async def run(self) -> None:
        """Clean periodically until cancelled."""
        await every(self._period, self.name, self.clean)

    async def clean(self) -> None:
        """Delete all expired LeaseCandidates.

        Raises:
            StatusError, Unavailable: the candidates cannot be listed.
        """
        page = await self._client.list(CANDIDATES)
        for candidate in page.get("items") or ():
            if is_expired(candidate, self._clock() - _VALIDITY):
                metadata = candidate["metadata"]
                conditions = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
                try:
                    await self._client.delete(
                        CANDIDATES, metadata["namespace"], metadata["name"], {"preconditions": conditions}
                    )
                except StatusError as error:
                    if error.code not in (404, 409):  # it is gone, or was renewed after the list
                        log.error("%s: %s/%s: %s", self.name, metadata["namespace"], metadata["name"], error)


def is_expired(candidate: Object, oldest: datetime) -> bool:
    """Return whether a LeaseCandidate was last renewed before a moment, or never."""
    renewed = candidate["spec"].get("renewTime")
    return not renewed or parse(renewed) < oldest


def _awaits_renewal(candidate: Object) -> bool:
    """Return whether a candidate has not been renewed since it was asked."""
    renewed, ping = candidate["spec"].get("renewTime"), candidate["spec"].get("pingTime")
    return bool(ping and renewed) and parse(renewed) < parse(ping)


def _is_waited_for(candidate: Object, moment: datetime) -> bool:
    """Return whether a candidate was asked to renew, has not done so, and still has time."""
    ping = candidate["spec"].get("pingTime")
    return bool(ping) and _awaits_renewal(candidate) and parse(ping) + _ELECTION > moment


def _was_renewed(candidate: Object, moment: datetime) -> bool:
    return parse(candidate["spec"]["renewTime"]) + _ELECTION > moment


def _lease_is_expired(lease: Object, moment: datetime) -> bool:
    spec = lease.get("spec") or {}
    renewed, seconds = spec.get("renewTime"), spec.get("leaseDurationSeconds")
    return not renewed or seconds is None or parse(renewed) + timedelta(seconds=seconds) < moment
