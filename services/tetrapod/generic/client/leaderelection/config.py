"""The timing of leader election (upstream: NewLeaderElector, component-base/config/options/leaderelectionconfig.go)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

JITTER: Final = 1.2
"""A waiting replica retries after the retry period plus up to this fraction of it (client-go: JitterFactor)."""


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
