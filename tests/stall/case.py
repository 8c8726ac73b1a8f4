"""`Case`: a kind of request that could stall the server, in any size."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from stall.client import Client
from stall.message import Message

HEAD: Final = (1 << 20) - 8192
"""Bytes of the largest head that is accepted, less what the client adds."""
BODY: Final = 3 << 20
"""Bytes of the largest body that is accepted. Upstream: staging/src/k8s.io/apiserver/pkg/server/config.go,
MaxRequestBodyBytes.
"""
WAITS: Final = {"anonymous": 0.1, "user": 0.1, "editor": 0.25, "admin": float("inf")}
"""Seconds that a request may keep all others waiting, by its sender. Those of an administrator are only reported."""
_PROBED: Final = (256, 512)
"""Numbers of elements from which the bytes of any number are estimated."""


@dataclass(frozen=True, slots=True)
class Case:
    """A request of `n` elements.

    Attributes:
        who: `anonymous`, `user` (may write ConfigMaps and custom resources of a namespace), `editor` (admin of a
            namespace) or `admin`.
        make: returns the message, or several that are sent one after the other, with `n` elements.
        limit: the bytes that a message may have.
        most: the largest `n`, for elements that are not bytes.
        prepare: called by an administrator before each message.
    """

    name: str
    who: str
    make: Callable[[int], Message | Sequence[Message]]
    limit: int = BODY
    most: int = 10_000_000
    prepare: Callable[[Client, int], Awaitable[None]] | None = None

    def messages(self, n: int) -> Sequence[Message]:
        made = self.make(n)
        return (made,) if isinstance(made, Message) else made

    def size(self, n: int) -> int:
        """Return the bytes of the largest message with `n` elements."""
        return max(message.size() for message in self.messages(n))

    def largest(self) -> int:
        """Return the largest number of elements whose message is within the limit, to a hundredth."""
        low, high = (min(number, self.most) for number in _PROBED)
        if low == high:
            return low
        small, large = self.size(low), self.size(high)
        n = low + max(0, self.limit - small) * (high - low) // max(large - small, 1)
        n = min(max(1, n), self.most)
        while 2 * n <= self.most and self.size(2 * n) <= self.limit:
            n *= 2
        while (size := self.size(n)) > self.limit and n > 1:
            n = min(n - 1, int(n * self.limit / size * 0.995))
        return n
