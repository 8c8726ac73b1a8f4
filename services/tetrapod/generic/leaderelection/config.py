"""How long a lease lasts, how often it is renewed (upstream: NewLeaderElector, component-base/config/options/leaderelectionconfig.go)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

JITTER: Final = 1.2
"""A replica that waits asks again after the retry period and up to this part of it more (client-go: JitterFactor)."""


@dataclass(frozen=True, slots=True)
class ElectionConfig:
    """Seconds. Raises ValueError, with upstream's text, where a leader could lose its lease before it notices."""

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
