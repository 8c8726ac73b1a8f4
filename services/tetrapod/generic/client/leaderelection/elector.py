"""`Elector`: holds a Lease and runs work only while it holds it.

A Lease has expired if it was not changed for its duration, by the clock of the replica that observes it: clocks of
replicas are never compared. The elector is stricter than upstream in two ways. A leader that sees another holder stops
immediately instead of after the renew deadline. The deadline counts from the last renewal, so that a process that was
suspended does not continue to work when it resumes.
Upstream: client-go/tools/leaderelection/leaderelection.go
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tetrapod.generic.client.leaderelection.leadership import Work
from tetrapod.generic.client.leaderelection.lock import LeaseLock
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.metrics.counters import Counter, Gauge
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import now_micro

log = logging.getLogger(__name__)

STATUS: Final = Gauge(
    "leader_election_master_status",
    "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. "
    "'name' is the string used to identify the lease. Please make sure to group by name.",
    ("name",),
)
SLOW_PATH: Final = Counter(
    "leader_election_slowpath_total",
    "Total number of slow path exercised in renewing leader leases. 'name' is the string used to identify the lease. "
    "Please make sure to group by name.",
    ("name",),
)
_FAILURES: Final = (StatusError, Unavailable, OSError, TimeoutError)


JITTER: Final = 1.2
"""A waiting replica retries after the retry period plus up to this fraction of it (client-go: JitterFactor)."""


class Elector:
    """An implementation of `Leadership` with a Lease.

    Args:
        lock: reads and writes the Lease, and has the identity of this replica.
        config: the timing.
        clock: returns the current time in seconds, of any epoch.
    """

    def __init__(self, lock: LeaseLock, config: ElectionConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock = lock
        self._config = config
        self._clock = clock
        self._observed: Object = {}
        self._observed_at = float("-inf")
        self._renewed_at = float("-inf")
        self._reported = ""
        STATUS.set((lock.name,), 0)

    @property
    def leader(self) -> str:
        """The identity of the last observed leader; "" before the first observation and after a release."""
        return str(self._observed.get("holderIdentity") or "")

    @property
    def leading(self) -> bool:
        """Whether the last observed leader is this replica. The Lease may have expired since."""
        return self.leader == self._lock.identity

    async def run(self, work: Work) -> None:
        """Acquire the Lease, run the work while it is held, and repeat. Never returns.

        The work is cancelled when the Lease cannot be renewed in time, or `run` is cancelled. If the work ends by
        itself, its error is logged. In each case the Lease is released afterwards if it is still held.
        """
        while True:
            await self._acquire()
            await self._term(work)
            await asyncio.sleep(self._config.retry_period)

    async def _acquire(self) -> None:
        log.info("attempting to acquire leader lease %s", self._lock)
        while not await self._try_for(self._config.renew_deadline):
            self._report()
            await asyncio.sleep(self._config.retry_period * (1 + random.random() * JITTER))
        self._report()

    async def _term(self, work: Work) -> None:
        name = (self._lock.name,)
        log.info("acquired leader lease %s", self._lock)
        STATUS.set(name, 1)
        working = asyncio.create_task(work(), name=f"leading {self._lock.name}")
        renewing = asyncio.create_task(self._renew(), name=f"renewing {self._lock.name}")
        event = asyncio.create_task(self._lock.record_event("became leader"))
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            STATUS.set(name, 0)
            for task in (working, renewing, event):
                task.cancel()
            outcomes = await asyncio.gather(working, renewing, event, return_exceptions=True)
            for outcome in outcomes[:2]:
                if isinstance(outcome, Exception):
                    log.error("leading %s ended: %s", self._lock, outcome, exc_info=outcome)
            # Another replica may only start after the work of this one has ended.
            await self._release()

    async def _renew(self) -> None:
        """Renew the Lease every retry period. Return when it is lost or could not be renewed before the deadline."""
        while True:
            await asyncio.sleep(self._config.retry_period)
            if not await self._renewed():
                log.error("failed to renew lease %s", self._lock)
                return

    async def _renewed(self) -> bool:
        deadline = self._renewed_at + self._config.renew_deadline
        while (left := deadline - self._clock()) > 0:
            if await self._try_for(left):
                return True
            self._report()
            if not self.leading:
                return False
            await asyncio.sleep(min(self._config.retry_period, max(0.0, deadline - self._clock())))
        return False

    async def _release(self) -> None:
        """Release the Lease if it is still held, so that another replica need not wait until it expires.

        Errors are logged; three conflicting updates end the attempts.
        """
        if not self.leading or not self._valid():
            return
        try:
            async with asyncio.timeout(self._config.renew_deadline):
                for attempt in range(3):
                    if attempt:
                        self._observe(await self._lock.get())
                    if not self.leading:
                        return
                    moment = now_micro()
                    record = {
                        **self._observed,
                        "holderIdentity": "",
                        "leaseDurationSeconds": 1,
                        "renewTime": moment,
                        "acquireTime": moment,
                    }
                    try:
                        await self._lock.update(record)
                    except StatusError as error:
                        if error.code != 409:
                            raise
                    else:
                        self._observe(record)
                        break
            await self._lock.record_event("stopped leading")
        except _FAILURES as error:
            log.info("lease %s could not be released: %s", self._lock, error or type(error).__name__)

    async def _try_for(self, seconds: float) -> bool:
        """Try once to acquire or renew the Lease, for at most `seconds`. Return whether this replica now holds it.

        False means that another replica holds it or that the attempt failed, which is logged.
        """
        began = self._clock()
        try:
            async with asyncio.timeout(seconds):
                held = await self._take()
        except _FAILURES as error:
            log.info("error with lease %s: %s", self._lock, error or type(error).__name__)
            return False
        if held:
            self._renewed_at = began
        return held

    async def _take(self) -> bool:
        """Acquire or renew the Lease and return True. Return False if another replica holds it.

        Raises:
            StatusError: a request was rejected; 409 if another replica wrote at the same time.
            Unavailable: the API server cannot be reached.
        """
        moment = now_micro()
        new_record: Object = {
            "holderIdentity": self._lock.identity,
            "leaseDurationSeconds": int(self._config.lease_duration),
            "acquireTime": moment,
            "renewTime": moment,
            "leaseTransitions": 0,
        }
        if self.leading and self._valid():  # most likely nothing has changed the Lease since the last renewal
            record = {**new_record, **self._unchanged_fields()}
            try:
                await self._lock.update(record)
            except _FAILURES as error:
                log.debug("lease %s was not as expected: %s", self._lock, error)
            else:
                self._observe(record)
                return True
        try:
            stored = await self._lock.get()
        except StatusError as error:
            if error.code != 404:
                raise
            await self._lock.create(new_record)
            self._observe(new_record)
            return True
        if stored != self._observed:
            self._observe(stored)
        if self.leader and self._valid() and not self.leading:
            return False
        if self.leading:
            SLOW_PATH.add((self._lock.name,))
            record = {**new_record, **self._unchanged_fields()}
        else:
            record = {**new_record, "leaseTransitions": int(stored.get("leaseTransitions") or 0) + 1}
        await self._lock.update(record)
        self._observe(record)
        return True

    def _unchanged_fields(self) -> Object:
        return {key: self._observed[key] for key in ("acquireTime", "leaseTransitions") if key in self._observed}

    def _observe(self, record: Object) -> None:
        self._observed, self._observed_at = record, self._clock()

    def _valid(self) -> bool:
        return self._observed_at + int(self._observed.get("leaseDurationSeconds") or 0) > self._clock()

    def _report(self) -> None:
        if self.leader != self._reported:
            self._reported = self.leader
            log.info("lease %s: the leader is %s", self._lock, self.leader or "nobody")


@dataclass(frozen=True, slots=True)
class ElectionConfig:
    """The Lease of a leader election, and the timing in seconds, with upstream's defaults.

    Attributes:
        name: the name of the Lease.
        namespace: its namespace.
        lease_duration: a Lease that is not renewed for this long may be taken over.
        renew_deadline: a leader that cannot renew the Lease for this long stops to lead.
        retry_period: the time between two tries to acquire or renew the Lease.

    Raises:
        ValueError: the timing would let a leader lose its Lease before it stops. The text is upstream's.
    """

    name: str
    namespace: str = "kube-system"
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if self.lease_duration <= self.renew_deadline:
            raise ValueError("leaseDuration must be greater than renewDeadline")
        if self.renew_deadline <= JITTER * self.retry_period:
            raise ValueError("renewDeadline must be greater than retryPeriod*JitterFactor")
        if self.lease_duration < 1:
            raise ValueError("leaseDuration must be greater than zero")
        if self.renew_deadline <= 0:
            raise ValueError("renewDeadline must be greater than zero")
        if self.retry_period <= 0:
            raise ValueError("retryPeriod must be greater than zero")
        if not self.name:
            raise ValueError("Lock identity is empty")
