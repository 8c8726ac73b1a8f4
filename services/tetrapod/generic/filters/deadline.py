"""Sets the deadline of requests: `?timeout=`, at most `--request-timeout`. Long-running requests have none.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go; pkg/server/filters/timeout.go
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from tetrapod.generic.http.headers import TEXT_TYPE
from tetrapod.generic.http.request import (
    MIN_WATCH_SECONDS,
    AnswerBroken,
    Handler,
    Request,
    Response,
    StreamResponse,
    StreamWriter,
)
from tetrapod.machinery import status
from tetrapod.machinery.golang.durations import parse_duration
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.requestinfo import is_long_running

log = logging.getLogger(__name__)

_LONGEST: Final = 256
"""Maximum length of `?timeout` in characters."""
_Run: TypeAlias = Callable[[StreamWriter], Awaitable[None]]
_OVERDUE: Final = (
    b'{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout",'
    b'"reason":"Timeout","details":{},"code":504}\n'
)
"""A Status without kind and apiVersion, as text: upstream's timeout handler does not negotiate."""


def _timeout_response() -> Response:
    return Response(504, [TEXT_TYPE], _OVERDUE)


def with_request_deadline(
    handler: Handler, request_timeout: float, min_watch_seconds: float = MIN_WATCH_SECONDS
) -> Handler:
    """Return a handler that sets `request.deadline`, and calls `handler`, but responds with 504 once it has passed.

    `handler` is then cancelled. A streamed response is cut off at the deadline. Long-running requests have no deadline;
    watches end themselves.

    Args:
        handler: the next handler.
        request_timeout: the default and the maximum of `?timeout`, in seconds.
        min_watch_seconds: only stored in `request.min_watch_seconds` of long-running requests. The watch handler
            computes the duration of watches without `timeoutSeconds` from it.
    """
    timeouts = SharedTimeout(request_timeout)

    async def request_deadline(request: Request) -> Response:
        if is_long_running(request.info):
            request.min_watch_seconds = min_watch_seconds
            return await handler(request)
        seconds = request_timeout
        if "timeout=" in request.query_string:
            seconds = _requested_timeout(request.query().values.get("timeout"), request_timeout)
        started = time.monotonic()
        request.deadline = started + seconds
        if seconds == request_timeout:
            task = timeouts.begin(started)
            try:
                response = await handler(request)
            except asyncio.CancelledError:
                if not timeouts.timed_out(task):
                    raise
                return _timeout_response()
            finally:
                timeouts.stop(task)
        else:
            try:
                async with asyncio.timeout(seconds):
                    response = await handler(request)
            except TimeoutError:
                return _timeout_response()
        if isinstance(response, StreamResponse):
            response.run = _until(request.deadline, response.run, request.raw_path)
        return response

    return request_deadline


def _until(deadline: float, run: _Run, path: str) -> _Run:
    """Return the stream `run`, cut off at `deadline`: it is then cancelled and raises AnswerBroken.

    A stream needs the limit because its producer or its client may be stuck. The path is for the log.
    """

    async def run_until(writer: StreamWriter) -> None:
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())) as limit:
                await run(writer)
        except TimeoutError:
            if not limit.expired():
                raise
            log.warning("the response to %s was cut off: it was not complete within the allotted timeout", path)
            raise AnswerBroken("timeout") from None

    return run_until


class SharedTimeout:
    """A timeout of the same duration for many tasks, which one timer serves. An expired task is cancelled.

    A timer for each request costs 4 µs (measured), a tenth of the filters. In exchange, a timeout occurs up to a
    sixtieth of its duration late.

    Args:
        seconds: the duration.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._started_at: dict[asyncio.Task[Any], float] = {}
        self._cancelled: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None  # until Python 3.12, asking for it is a system call

    def begin(self, now: float) -> asyncio.Task[Any] | None:
        """Start the timeout of the current task and return the task, for `timed_out` and `stop`.

        Args:
            now: the time.monotonic() at which the timeout begins.

        Returns:
            None if the task already has a timeout. Then nothing is started, because the outer timeout also covers a
                request made within another one.
        """
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        task = asyncio.current_task(self._loop)
        if task is None or task in self._started_at:
            return None
        self._started_at[task] = now
        if self._timer is None:
            self._schedule()
        return task

    def timed_out(self, task: asyncio.Task[Any] | None) -> bool:
        """Return whether `task` was cancelled by this timeout and by nothing else. False for None."""
        return task is not None and task in self._cancelled and task.cancelling() == 1

    def stop(self, task: asyncio.Task[Any] | None) -> None:
        """End the timeout of `task`, and undo its cancellation if the timeout has expired. Do nothing for None."""
        if task is not None:
            del self._started_at[task]
            if task in self._cancelled:
                self._cancelled.remove(task)
                task.uncancel()

    def _schedule(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._seconds / 60, self._cancel_expired)

    def _cancel_expired(self) -> None:
        self._timer = None
        late = time.monotonic() - self._seconds
        for task, started_at in self._started_at.items():
            if started_at > late:
                break
            if task not in self._cancelled:
                self._cancelled.add(task)
                task.cancel()
        if self._started_at:
            self._schedule()


def _requested_timeout(text: str | None, limit: float) -> float:
    if not text:
        return limit
    if len(text) > _LONGEST:  # Go accepts this, if it is a sum of thousands of numbers
        raise status.bad_request(
            f"invalid timeout specified in the request URL - time: invalid duration {go_quote(text[:_LONGEST])}"
        )
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise status.bad_request(f"invalid timeout specified in the request URL - {error}") from None
    return min(seconds, limit) if seconds > 0 else limit
