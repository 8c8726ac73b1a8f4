"""`Lifecycle`: the post-start hooks, health checks, readiness and shutdown of a server.

Services register them, and the server runs them. A hook is a coroutine function. It returns once its work has started
successfully (for example after a controller's first sync), and starts long-running tasks with `Lifecycle.background`.
/readyz fails until every post-start hook has returned.
Upstream: k8s.io/apiserver/pkg/server/hooks.go, healthz.go
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Protocol

from tetrapod.machinery.status import StatusError

log = logging.getLogger(__name__)

_FIRST_WAIT, _LONGEST_WAIT = 0.2, 5.0
_LEAVING_TIMEOUT_SECONDS: Final = 3.0

Hook = Callable[[], Awaitable[None]]
Check = Callable[[], Awaitable[None]]
"""Returns if healthy, and raises with the reason if not."""

ENDPOINTS: Final = ("healthz", "livez", "readyz")


RETRY_SECONDS: Final = 1
"""The Retry-After, in seconds, of 503 responses to requests that were not executed. Upstream uses the same value when a
server stops (filters/with_retry_after.go).
"""


class Followed(Protocol):
    """An informer that the lifecycle runs. `synced` is set after its first list."""

    synced: asyncio.Event

    async def run(self) -> None: ...


class Lifecycle:
    """The hooks, health checks and background tasks of a server.

    Args:
        livez_grace_period: the seconds from now on in which /livez assumes that unfinished post-start hooks will
            succeed.

    Attributes:
        hooks: the post-start hooks by name.
        hooks_done: the names of those that have succeeded.
        leaving: the hooks of `on_leaving`, which run first when the server stops (upstream: pre-shutdown hooks).
        shutdown: the hooks of `on_shutdown`, which run last when the server stops.
        checks: the health checks in order by name, including those of hooks, each with the endpoints (`healthz`,
            `livez`, `readyz`) that show it.
        shutting_down: set once the server begins to stop.
        paths_known: an event of each informer that decides about paths (APIServices, CustomResourceDefinitions), which
            the services append. It is set once the informer has its first list.
    """

    def __init__(self, livez_grace_period: float = 0.0) -> None:
        self._grace_ends = time.monotonic() + livez_grace_period
        self.hooks: dict[str, Hook] = {}
        self.hooks_done: set[str] = set()
        self.leaving: dict[str, Hook] = {}
        self.shutdown: dict[str, Hook] = {}
        self.checks: dict[str, tuple[Check, tuple[str, ...]]] = {}
        self._livez_checks: dict[str, Check] = {}
        """The checks that /livez has in place of those in `checks`."""
        self.shutting_down = asyncio.Event()
        self.paths_known: list[asyncio.Event] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._followed: list[tuple[str, Followed]] = []

    def on_start(self, name: str, hook: Hook) -> None:
        """Register a post-start hook and its health check `poststarthook/NAME`.

        The check fails until the hook has succeeded.

        Raises:
            ValueError: there is already a hook of that name.
        """
        if name in self.hooks:
            raise ValueError(f"post-start hook {name!r} is registered twice")
        self.hooks[name] = hook
        self.add_boot_check(f"poststarthook/{name}", self._hook_check(name))

    def _hook_check(self, name: str) -> Check:
        async def check() -> None:
            if name not in self.hooks_done:
                raise RuntimeError("not finished")

        return check

    def add_boot_check(self, name: str, check: Check) -> None:
        """Register a health check of the startup. On /livez it counts as passed until the grace period is over.

        Upstream: pkg/server/healthz.go, AddBootSequenceHealthChecks
        """

        async def check_after_grace_period() -> None:
            if time.monotonic() > self._grace_ends:
                await check()

        self.add_check(name, check)
        self._livez_checks[name] = check_after_grace_period

    def on_leaving(self, name: str, hook: Hook) -> None:
        """Register a hook that `leave` runs when the server begins to stop, while it still serves.

        Such a hook removes the server from endpoints, for example. It is limited to 3 seconds.
        Upstream: AddPreShutdownHook, "including deregistering from the kubernetes endpoint"
        """
        self.leaving[name] = hook

    def on_shutdown(self, name: str, hook: Hook) -> None:
        """Register a hook that `stop` runs after the background tasks have been cancelled.

        A hook that was registered before with the same name is replaced.
        """
        self.shutdown[name] = hook

    def add_check(self, name: str, check: Check, endpoints: tuple[str, ...] = ENDPOINTS) -> None:
        """Register a health check that the given endpoints show, in place of an existing check of the same name.

        Args:
            name: the name of the check.
            check: returns if the server is healthy, and raises any exception otherwise; its text is the reason.
            endpoints: `healthz`, `livez` and `readyz`, or some of them.
        """
        self.checks[name] = (check, endpoints)

    def checks_of(self, endpoint: str) -> dict[str, Check]:
        """Return the checks by name that an endpoint (`healthz`, `livez` or `readyz`) shows, in order."""
        checks = {name: check for name, (check, endpoints) in self.checks.items() if endpoint in endpoints}
        return checks | self._livez_checks if endpoint == "livez" else checks

    def follow(self, name: str, informer: Followed) -> None:
        """Run an informer in a background task. The check `informer-sync` waits for its first list.

        If the same informer is passed again, nothing happens. Two services may each have an informer of the same name.
        """
        if all(informer is not followed for _, followed in self._followed):
            self._followed.append((name, informer))
            self.background(f"informer/{name}", informer.run())

    async def informers_synced(self) -> None:
        """Raise RuntimeError unless all informers of `follow` have synced. This is the check `informer-sync`."""
        waiting = [name for name, informer in self._followed if not informer.synced.is_set()]
        if waiting:
            raise RuntimeError(f"{len(waiting)} informers not started yet: {waiting}")

    def has_all_paths(self) -> bool:
        """Return whether the server knows all its paths, so that 404 is correct for an unknown one.

        It does once the informers of APIServices and CustomResourceDefinitions have their first list (`paths_known`).
        Before that, an unknown path gets a 503.

        Upstream: genericapiserver.go, MuxAndDiscoveryCompleteSignals
        """
        return all(event.is_set() for event in self.paths_known)

    def background(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work` in a task until it ends or `stop` cancels it, and return the task.

        An error that ends the task is logged; the task is not restarted.
        """
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background task %s ended: %s", task.get_name(), error, exc_info=error)

    async def start(self) -> None:
        """Run all post-start hooks concurrently, and return when each has succeeded.

        A hook is run again after a pause while it raises `Unavailable` or a `StatusError` of 500 or above; the number
        of attempts is not limited. Any other error of a hook is raised.
        """
        await asyncio.gather(*(self._run_hook(name, hook) for name, hook in self.hooks.items()))

    async def _run_hook(self, name: str, hook: Hook) -> None:
        """Run a post-start hook until it succeeds, then add its name to `hooks_done`.

        It runs again after a delay if it raised Unavailable or a StatusError with a code of 500 or more. Other
        exceptions are passed on.
        """
        wait = _FIRST_WAIT
        while True:
            try:
                await hook()
            except (Unavailable, StatusError) as error:
                if isinstance(error, StatusError) and error.code < 500:
                    raise
                log.warning("post-start hook %s waits: %s", name, error)
                await asyncio.sleep(wait)
                wait = min(wait * 2, _LONGEST_WAIT)
            else:
                self.hooks_done.add(name)
                return

    async def leave(self, delay: float) -> None:
        """Make the server unready, run the hooks of `on_leaving`, and wait.

        Return after the hooks have ended and `delay` seconds have passed. Errors and timeouts of hooks are logged.
        """
        self.shutting_down.set()

        async def run_hook(name: str, hook: Hook) -> None:
            try:
                async with asyncio.timeout(_LEAVING_TIMEOUT_SECONDS):
                    await hook()
            except TimeoutError:
                log.warning("%s: not within %g s", name, _LEAVING_TIMEOUT_SECONDS)
            except Exception:
                log.exception("%s failed while the server stops", name)

        await asyncio.gather(asyncio.sleep(delay), *(run_hook(name, hook) for name, hook in list(self.leaving.items())))

    async def stop(self) -> None:
        """Cancel all background tasks, then run the hooks of `on_shutdown` in order. Errors of hooks are logged."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for name, hook in self.shutdown.items():
            try:
                await hook()
            except Exception:
                log.exception("shutdown hook %s failed", name)


class Unavailable(Exception):
    """The store or a service did not respond, or not in time. A write may have taken effect nevertheless."""
