"""Periodic work, and post-start hooks that write objects and rewrite them periodically from then on.

Users' webhooks and policies see the server's own writes, as upstream, and may reject or delay them. The server becomes
ready nevertheless: upstream's controllers start in the background, and its RBAC bootstrap continues past rejected
objects.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from tetrapod.generic.lifecycle import Hook, Lifecycle, Unavailable
from tetrapod.machinery.failure import Failure
from tetrapod.machinery.status import StatusError

log = logging.getLogger(__name__)


FIRST_ATTEMPT_TIMEOUT: Final = 10.0
"""Seconds that the start of the server waits for the first attempt. A webhook may take 30 s for each object."""
FIRST_RETRY: Final = 1.0
_NO_DECISION: Final = frozenset({"ServerTimeout", "ServiceUnavailable", "Timeout", "TooManyRequests"})


async def every(
    seconds: float,
    name: str,
    work: Callable[[], Awaitable[None]],
    *,
    level: int = logging.WARNING,
    at_once: bool = True,
) -> None:
    """Await `work`, then sleep for `seconds`, and repeat until cancelled.

    API errors (StatusError, Unavailable, OSError) of `work` are logged at `level`; others are raised.

    Args:
        seconds: the pause between two calls.
        name: the beginning of the log lines.
        work: the work.
        level: the level of the log lines.
        at_once: whether the first call is immediate; otherwise it comes after `seconds`.
    """
    if not at_once:
        await asyncio.sleep(seconds)
    while True:
        try:
            await work()
        except (StatusError, Unavailable, OSError) as error:
            log.log(level, "%s: %s", name, error)
        await asyncio.sleep(seconds)


def periodic_hook(
    lifecycle: Lifecycle, name: str, work: Hook, period: float | None = None, *, after: asyncio.Event | None = None
) -> Hook:
    """Return a post-start hook that calls `work`, and keeps calling it in the background.

    The hook returns once the first call has succeeded, was rejected, or has taken longer than `FIRST_ATTEMPT_TIMEOUT`.
    If the store or another service does not respond, the hook raises the error. The lifecycle then calls it again, and
    the server is not ready until then. Failed calls in the background are repeated with backoff.

    Args:
        lifecycle: runs the background task.
        name: the name of the task in logs.
        work: the work, such as writing default objects.
        period: seconds between two calls; None to stop after the first success.
        after: an event that the first call waits for; None to start at once.
    """

    async def start() -> None:
        if after is not None:
            await after.wait()
        attempt = asyncio.ensure_future(work())
        try:
            await asyncio.wait({attempt}, timeout=FIRST_ATTEMPT_TIMEOUT)
        except asyncio.CancelledError:
            attempt.cancel()
            raise
        if attempt.done() and (error := attempt.exception()) is not None and not is_rejection(error):
            raise Failure(error).error()
        lifecycle.background(name, _repeat(name, attempt, work, period))

    return start


def is_rejection(error: BaseException) -> bool:
    """Return whether an exception is a decision of the API, such as a 403 or 422.

    It is False if a store or service did not respond or asked to retry, and for exceptions other than StatusError.
    """
    return isinstance(error, StatusError) and error.reason not in _NO_DECISION


async def _repeat(name: str, attempt: asyncio.Future[None], work: Hook, period: float | None) -> None:
    retry = FIRST_RETRY
    while True:
        try:
            await attempt
        except (StatusError, Unavailable, OSError) as error:
            log.warning("%s: %s", name, error)
            await asyncio.sleep(retry if period is None else min(retry, period))
            retry = min(retry * 2, period or 60.0)
        else:
            if period is None:
                return
            retry = FIRST_RETRY
            await asyncio.sleep(period)
        attempt = asyncio.ensure_future(work())
