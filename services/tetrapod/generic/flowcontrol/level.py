"""`Level`: a priority level with its queues, limits and seat demand.

Upstream: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go, priorityLevelState
"""

from __future__ import annotations

import math
from typing import Any, Final

from tetrapod.generic.flowcontrol import metrics
from tetrapod.generic.flowcontrol.allocation import round_seats
from tetrapod.generic.flowcontrol.queue import Queuing
from tetrapod.generic.flowcontrol.queueset import QueueSet
from tetrapod.generic.flowcontrol.retry_after import RetryAfter
from tetrapod.machinery.gvk import Object

_SMOOTHING: Final = 0.977
"""Smoothing factor per adjustment: with one adjustment every ten seconds, half of a past demand decays in five
minutes.
"""
_MOST_SEATS_SHARE: Final = 0.15
_NO_LIMIT: Final = Queuing(-1)


class Level:
    """A priority level.

    Attributes:
        name: the name of the PriorityLevelConfiguration.
        uid: its uid; "" for a default.
        shares: nominalConcurrencyShares.
        quiescing: whether it was deleted, but still serves requests.
        exempt: whether its requests are not limited.
        nominal: the seats that follow from the shares.
        lower: the seats that remain if it lends all that it may lend.
        upper: the seats if it borrows all that it may borrow.
        current: the present limit in seats.
        most_seats: the most seats that one request is estimated to take; 0 if that is not limited.
        highest: the highest demand for seats in the last period.
        smoothed: the smoothed demand for seats.
        retry_after: the Retry-After of its rejected requests.
        queues: its queues.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.uid = ""
        self.shares = 0
        self.quiescing = False
        self.exempt = False
        self.nominal = self.lower = self.upper = self.current = 0
        self.most_seats = 0  # seats of one request at most; 0 if not limited
        self.highest = 0
        self.smoothed = 0.0
        self.retry_after = RetryAfter()
        self.queues = QueueSet(name, Queuing(0), 0)
        self._lendable = 0
        self._borrowing: int | None = None
        self._new = True

    @property
    def needed(self) -> int:
        """The seats that the level does not lend: its recent peak demand, at least `lower` and at most `nominal`."""
        return max(self.lower, min(self.nominal, self.highest))

    def apply_spec(self, obj: Object) -> None:
        """Take over the type, shares, borrowing limits and queues of a PriorityLevelConfiguration.

        The limits of concurrent requests change at the next `set_limits`.

        Args:
            obj: the PriorityLevelConfiguration.
        """
        spec = obj["spec"]
        limits = spec.get("limited") or spec.get("exempt") or {}
        self.uid = obj["metadata"].get("uid", "")
        self.exempt = spec.get("type") == "Exempt"
        self.quiescing = False
        self.shares = limits.get("nominalConcurrencyShares") or 0
        self._lendable = limits.get("lendablePercent") or 0
        self._borrowing = limits.get("borrowingLimitPercent")
        self.queues.configure(queuing_of(obj) or _NO_LIMIT, self.current)

    def set_limits(self, server_seats: int, all_shares: int) -> int:
        """Compute the nominal limit and the bounds from the shares, and return the nominal limit.

        A new level also gets its first current limit.

        Args:
            server_seats: seats of the whole server.
            all_shares: sum of the shares of all levels.
        """
        nominal = math.ceil(server_seats * self.shares / all_shares) if all_shares else 0
        lendable = round_seats(nominal * self._lendable / 100)
        borrowing = server_seats if self._borrowing is None else round_seats(nominal * self._borrowing / 100)
        self.nominal, self.lower, self.upper = nominal, nominal - lendable, nominal + borrowing
        self.queues.nominal = nominal
        hand = self.queues.queuing.hand_size
        self.most_seats = max(1, min(math.ceil(nominal * _MOST_SEATS_SHARE), nominal // hand)) if hand else 0
        if self._new:
            self._new = False
            self.current = nominal - lendable // 2
        name = (self.name,)
        metrics.NOMINAL.set(name, self.nominal)
        metrics.LOWER.set(name, self.lower)
        metrics.UPPER.set(name, self.upper)
        return nominal

    def update_demand(self) -> None:
        """Compute `highest` and `smoothed` from the demand for seats since the last call, and set their metrics."""
        demand = self.queues.results()
        self.highest = round_seats(demand.highest)
        if demand.duration > 0:
            envelope = demand.average + demand.deviation
            self.smoothed = max(envelope, _SMOOTHING * self.smoothed + (1 - _SMOOTHING) * envelope)
        name = (self.name,)
        metrics.HIGHEST_DEMAND.set(name, self.highest)
        metrics.AVERAGE_DEMAND.set(name, demand.average)
        metrics.DEVIATION.set(name, demand.deviation)
        metrics.SMOOTHED.set(name, self.smoothed)

    def set_current(self, seats: int) -> None:
        """Set the current limit of the level and of its queues to `seats`.

        If the limit grows, queued requests that now fit start to execute.
        """
        self.current = seats
        metrics.CURRENT.set((self.name,), seats)
        self.queues.configure(self.queues.queuing, seats)


def queuing_of(obj: Object) -> Queuing | None:
    """Return the queue settings of a PriorityLevelConfiguration.

    Returns:
        None if type, `limited`, `exempt` and name contradict each other. Callers ignore such an object.
    """
    spec: dict[str, Any] = obj.get("spec") or {}
    kind, limited = spec.get("type"), spec.get("limited")
    if (kind == "Limited") != (limited is not None) or (kind == "Exempt") != (spec.get("exempt") is not None):
        return None
    if (kind == "Exempt") != (obj["metadata"]["name"] == "exempt"):
        return None
    if limited is None:
        return _NO_LIMIT
    response = limited.get("limitResponse") or {}
    queuing = response.get("queuing")
    if (response.get("type") == "Reject") != (queuing is None):
        return None
    if queuing is None:
        return Queuing(0)
    return Queuing(queuing.get("queues", 64), queuing.get("queueLengthLimit", 50), queuing.get("handSize", 8))
