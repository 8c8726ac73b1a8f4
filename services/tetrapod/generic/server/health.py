"""`/healthz`, `/livez`, `/readyz`: named checks with `?verbose`, `?exclude=`, and a path for each check.

Upstream: k8s.io/apiserver/pkg/server/healthz/healthz.go; the order of the checks, the texts and the headers are the
same.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from tetrapod.generic.http.request import HeaderList, Request, Response
from tetrapod.generic.lifecycle import Check, Lifecycle
from tetrapod.generic.metrics.collectors import HEALTHCHECK, HEALTHCHECKS_TOTAL

log = logging.getLogger(__name__)

_TEXT: Final[HeaderList] = [(b"content-type", b"text/plain; charset=utf-8"), (b"x-content-type-options", b"nosniff")]
_PLAIN: Final[HeaderList] = [(b"content-type", b"text/plain; charset=utf-8")]


_ORDER: Final = (
    "ping",
    "log",
    "loopback-serving-certificate",
    "etcd",
    "etcd-readiness",
    "informer-sync",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
)
"""Upstream's order of the checks, for the ones that several services register in any order; others follow in order of
registration.
"""
_PLACES: Final = {name: place for place, name in enumerate(_ORDER)}


class Health:
    """The endpoints /healthz, /livez and /readyz, which run the health checks of a `Lifecycle`."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle

    def checks(self, endpoint: str) -> dict[str, Check]:
        """Return the checks of an endpoint (`healthz`, `livez` or `readyz`) by name, in upstream's order.

        They are the built-in checks, those of the lifecycle, and for readyz that of the shutdown.
        """
        registered: dict[str, Check] = {"ping": _ok, "log": _log_is_written}
        registered.update(self._lifecycle.checks_of(endpoint))
        checks = {
            name: registered[name] for name in sorted(registered, key=lambda name: _PLACES.get(name, len(_ORDER)))
        }
        if endpoint == "readyz":
            checks["shutdown"] = self._shutdown_check
        return checks

    async def _shutdown_check(self) -> None:
        if self._lifecycle.shutting_down.is_set():
            raise RuntimeError("process is shutting down")

    def paths(self) -> list[str]:
        """Return the paths of the three endpoints, each followed by those of its single checks."""
        return [
            p for e in ("healthz", "livez", "readyz") for p in (f"/{e}", *(f"/{e}/{name}" for name in self.checks(e)))
        ]

    async def handle(self, request: Request) -> Response | None:
        """Run the checks of a path and return the response: 200, or 500 if a check fails.

        Return None for an unknown path.

        All checks of an endpoint run concurrently, each for at most 10 seconds.
        """
        endpoint, _, name = request.path.lstrip("/").partition("/")
        checks = self.checks(endpoint)
        if not name:
            return None if request.path.endswith("/") else await _check_all(endpoint, checks, request)
        return await _check_one(endpoint, name, checks[name]) if name in checks else None


async def _ok() -> None:
    return None


async def _log_is_written() -> None:
    """Raise RuntimeError if the stream of a log handler is closed. This is the check `log`."""
    for handler in logging.getLogger().handlers:
        stream = getattr(handler, "stream", None)
        if stream is not None and stream.closed:
            raise RuntimeError("logging blocked")


async def _check_one(endpoint: str, name: str, check: Check) -> Response:
    failure = await _run(endpoint, name, check)
    if failure is None:
        return Response(200, list(_PLAIN), b"ok")
    return Response(500, list(_TEXT), f"internal server error: {failure}\n".encode())


async def _check_all(endpoint: str, checks: dict[str, Check], request: Request) -> Response:
    query = request.query().lists
    excluded = set(query.get("exclude", []))
    lines: list[str] = []
    failed: list[str] = []
    wanted = [name for name in checks if name not in excluded]
    outcome = dict(
        zip(wanted, await asyncio.gather(*(_run(endpoint, name, checks[name]) for name in wanted)), strict=True)
    )
    for name in checks:
        if name in excluded:
            lines.append(f"[+]{name} excluded: ok")
        elif outcome[name] is None:
            lines.append(f"[+]{name} ok")
        else:
            lines.append(f"[-]{name} failed: reason withheld")
            failed.append(f"{name}: {outcome[name]}")
    unknown = sorted(excluded - checks.keys())
    warning = f"warn: some health checks cannot be excluded: no matches for {_quote_all(unknown)}\n" if unknown else ""
    text = "\n".join(lines) + "\n"
    if failed:
        log.info("%s check failed: %s", endpoint, "; ".join(failed))
        return Response(500, list(_TEXT), f"{text}{warning}{endpoint} check failed\n".encode())
    if "verbose" not in query:
        return Response(200, list(_TEXT), b"ok")
    return Response(200, list(_TEXT), f"{text}{warning}{endpoint} check passed\n".encode())


async def _run(endpoint: str, name: str, check: Check) -> str | None:
    """Run a check and return the reason of its failure, or None. The result is counted for /metrics/slis."""
    failure: str | None = None
    try:
        async with asyncio.timeout(10):
            await check()
    except Exception as error:
        failure = str(error) or type(error).__name__
    HEALTHCHECK.set((name, endpoint), 0.0 if failure else 1.0)
    HEALTHCHECKS_TOTAL.add((name, "error" if failure else "success", endpoint))
    return failure


def _quote_all(names: list[str]) -> str:
    from tetrapod.machinery.golang.quoting import go_quote

    return ",".join(go_quote(name) for name in names)
