"""`RequestBodies`: limits the memory of request bodies that are received or handled.

A handler reads a whole body before it decodes it. A body of more than `body.HIGH_WATER` bytes therefore reserves its
length first: the Content-Length, or the largest permitted length if that is unknown. The reservation ends when the
handler returns. While no memory is free, a request waits, and its connection is not read.

- A user reserves at most `USER_LIMIT` bytes, and all users together at most `PROCESS_LIMIT`.
- Freed memory goes to the waiting user who has reserved least.
- A request that has waited for `LONGEST_WAIT` seconds is answered with 429 and Retry-After.

Go's server has no such limit. There, the seats of priority and fairness are the only bound: 600 bodies of 3 MiB.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from typing import Final

from tetrapod.machinery.status import too_many_requests

log = logging.getLogger(__name__)

PROCESS_LIMIT: Final = 128 << 20
USER_LIMIT: Final = 32 << 20
"""Bytes for ten bodies of the largest length. They are decoded one after the other, so that more gain no speed."""
LONGEST_WAIT: Final = 15.0
"""Seconds. Priority and fairness lets requests wait as long in its queues: a quarter of the default request timeout."""
_RETRY_AFTER: Final = 1
_TOO_MANY: Final = "too many large request bodies are in progress, please try again later"


@dataclass(slots=True, eq=False)
class _Waiting:
    """A request that waits for memory: the bytes that it needs, and the future that is done once it has them."""

    size: int
    granted: asyncio.Future[None]


class RequestBodies:
    """The memory that bodies of requests have reserved, for each user and for the process.

    Args:
        process_limit: the bytes that all users may reserve together. A single body may exceed it.
        user_limit: the bytes that one user may reserve. A single body of a user may exceed it.
    """

    def __init__(self, process_limit: int = PROCESS_LIMIT, user_limit: int = USER_LIMIT) -> None:
        self._process_limit, self._user_limit = process_limit, user_limit
        self._total = 0
        self._of_user: dict[str, int] = {}
        self._waiting: dict[str, deque[_Waiting]] = {}  # the users in the order in which they began to wait

    @property
    def total(self) -> int:
        """Return the bytes that are reserved."""
        return self._total

    async def reserve(self, user: str, size: int, *, exempt: bool = False) -> None:
        """Reserve memory for a body, waiting until it is free. The caller calls `release` with the same arguments.

        If the caller is cancelled, nothing is reserved.

        Args:
            user: the name of the user.
            size: the bytes of the body.
            exempt: whether the body is counted, but does not wait.

        Raises:
            StatusError: 429, the memory was not free for `LONGEST_WAIT` seconds.
        """
        if exempt or (not self._waiting and self._fits(user, size)):
            self._count(user, size)
            return
        waiting = _Waiting(size, asyncio.get_running_loop().create_future())
        self._waiting.setdefault(user, deque()).append(waiting)
        self._grant()
        try:
            await asyncio.wait((waiting.granted,), timeout=LONGEST_WAIT)
        except asyncio.CancelledError:
            if waiting.granted.done():
                self.release(user, size)
            else:
                self._give_up(user, waiting)
            raise
        if not waiting.granted.done():
            self._give_up(user, waiting)
            log.warning("rejected a request of %r: no memory for its body of %d bytes", user[:200], size)
            raise too_many_requests(_TOO_MANY, _RETRY_AFTER)

    def release(self, user: str, size: int) -> None:
        """Free memory that `reserve` has reserved, and give it to requests that wait."""
        self._count(user, -size)
        self._grant()

    def _count(self, user: str, size: int) -> None:
        self._total += size
        of_user = self._of_user.get(user, 0) + size
        if of_user:
            self._of_user[user] = of_user
        else:
            del self._of_user[user]

    def _fits(self, user: str, size: int) -> bool:
        return self._within_share(user, size) and (not self._total or self._total + size <= self._process_limit)

    def _within_share(self, user: str, size: int) -> bool:
        of_user = self._of_user.get(user, 0)
        return not of_user or of_user + size <= self._user_limit

    def _grant(self) -> None:
        """Give free memory to waiting requests, in the order of their users' reservations.

        If the memory does not suffice for the first request, no other one overtakes it, so that large bodies do not
        wait for as long as small ones arrive.
        """
        while self._waiting:
            users = [user for user, queue in self._waiting.items() if self._within_share(user, queue[0].size)]
            user = min(users, key=lambda name: self._of_user.get(name, 0), default=None)
            if user is None or not self._fits(user, self._waiting[user][0].size):
                return
            waiting = self._waiting[user][0]
            self._remove(user, waiting)
            self._count(user, waiting.size)
            waiting.granted.set_result(None)

    def _give_up(self, user: str, waiting: _Waiting) -> None:
        """Remove a request that no longer waits, and grant memory to those that it held up."""
        self._remove(user, waiting)
        self._grant()

    def _remove(self, user: str, waiting: _Waiting) -> None:
        queue = self._waiting[user]
        queue.remove(waiting)
        if not queue:
            del self._waiting[user]
