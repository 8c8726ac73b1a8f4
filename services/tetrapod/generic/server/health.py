"""`/healthz`, `/livez`, `/readyz`: named checks with `?verbose`, `?exclude=`, and a path for each check.

Upstream: k8s.io/apiserver/pkg/server/healthz/healthz.go; the order of the checks, the texts and the headers are the
same.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from tetrapod.generic.http.headers import NOSNIFF, TEXT_TYPE
from tetrapod.generic.http.request import HeaderList, Request, Response
from tetrapod.generic.lifecycle import Check, Lifecycle
from tetrapod.generic.metrics.counters import Counter, Gauge
from tetrapod.generic.metrics.metric import SLIS

log = logging.getLogger(__name__)

_CHECK: Final = Gauge(
    "kubernetes_healthcheck", "This metric records the result of a single healthcheck.", ("name", "type"), SLIS
)
_CHECKS: Final = Counter(
    "kubernetes_healthchecks_total",
    "This metric records the results of all healthcheck.",
    ("name", "status", "type"),
    SLIS,
)

_TEXT: Final[HeaderList] = [TEXT_TYPE, NOSNIFF]
_PLAIN: Final[HeaderList] = [TEXT_TYPE]


_ORDER: Final = (
    "ping",
    "log",
    "loopback-serving-certificate",
    "etcd",
    "etcd-readiness",
    "kms-providers",
    "informer-sync",
    "poststarthook/start-encryption-provider-config-automatic-reload",
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
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/aggregator-reload-proxy-client-cert",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
)
"""Upstream's order of the checks, for the ones that several services register in any order; others follow in order of
registration, and `shutdown` is the last.
"""
_PLACES: Final = {**{name: place for place, name in enumerate(_ORDER)}, "shutdown": len(_ORDER) + 1}

_OVERRIDE: Final = re.compile(r"etcd-override(?P<readiness>-readiness)?-(?P<number>[0-9]+)")
"""The checks of the stores of --etcd-servers-overrides. Those of one store follow each other."""
_KMS_PLUGIN: Final = re.compile(r"kms-provider-(?P<number>[0-9]+)")
"""The checks of single KMS plugins, in place of `kms-providers`."""


class RemoteChecks(Protocol):
    """The health checks of another process (a peer service), which the aggregator shows beside its own."""

    def names(self, endpoint: str) -> Sequence[str]:
        """Return the names of the checks on an endpoint."""
        ...

    async def results(self, endpoint: str) -> Mapping[str, str | None]:
        """Run the checks of an endpoint, and return by name the reason of the failure, or None if the check passed.

        A process that cannot be reached is a reason for the failure of its checks; nothing is raised.
        """
        ...

    async def result(self, endpoint: str, name: str) -> str | None:
        """Run a single check, and return the reason of the failure, or None if it passed.

        A process that cannot be reached is such a reason; nothing is raised.
        """
        ...


class Health:
    """The endpoints /healthz, /livez and /readyz, which run the health checks of a `Lifecycle`.

    Attributes:
        remote: the checks of other processes. They are run for `?verbose` and for the paths of single checks, but not
            for the endpoints as such: another process must not make a probe restart this one.
    """

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle
        self.remote: list[RemoteChecks] = []

    def checks(self, endpoint: str) -> dict[str, Check]:
        """Return the checks of an endpoint (`healthz`, `livez` or `readyz`) by name, in upstream's order.

        They are the built-in checks, those of the lifecycle, and for readyz that of the shutdown.
        """
        registered: dict[str, Check] = {"ping": _ok, "log": _log_is_written}
        registered.update(self._lifecycle.checks_of(endpoint))
        if endpoint == "readyz":
            registered["shutdown"] = self._shutdown_check
        return {name: registered[name] for name in _ordered(registered)}

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
            if request.path.endswith("/"):
                return None
            remote = self.remote if "verbose" in request.query().lists else ()
            return await _check_all(endpoint, checks, remote, request)
        if name in checks:
            return _single(await _run(endpoint, name, checks[name]))
        for remote_checks in self.remote:
            if name in remote_checks.names(endpoint):
                return _single(await remote_checks.result(endpoint, name))
        return None


async def _ok() -> None:
    return None


async def _log_is_written() -> None:
    """Raise RuntimeError if the stream of a log handler is closed. This is the check `log`."""
    for handler in logging.getLogger().handlers:
        stream = getattr(handler, "stream", None)
        if stream is not None and stream.closed:
            raise RuntimeError("logging blocked")


def _ordered(names: Iterable[str]) -> list[str]:
    """Return the names of checks in upstream's order."""

    def place(name: str) -> tuple[int, int]:
        if (override := _OVERRIDE.fullmatch(name)) is not None:
            return _PLACES["etcd-readiness"], 1 + int(override["number"])
        if (plugin := _KMS_PLUGIN.fullmatch(name)) is not None:
            return _PLACES["kms-providers"], int(plugin["number"])
        return _PLACES.get(name, len(_ORDER)), 0

    return sorted(names, key=place)


def _group(name: str) -> str | None:
    """Return the group name by which `?exclude=` excludes a check together with others, or None if it is in no group.

    The checks of stores of single resources (`etcd-override-0`, …) are in the group `etcd`, or `etcd-readiness`.
    Upstream: pkg/server/options/etcd.go, NamedGroupedCheck
    """
    override = _OVERRIDE.fullmatch(name)
    return f"etcd{override['readiness'] or ''}" if override is not None else None


def _single(failure: str | None) -> Response:
    """Return the response to a request for one check: 200 if `failure` is None, otherwise a 500 with this reason."""
    if failure is None:
        return Response(200, list(_PLAIN), b"ok")
    return Response(500, list(_TEXT), f"internal server error: {failure}\n".encode())


async def _results(
    endpoint: str, checks: dict[str, Check], remote: Sequence[RemoteChecks], excluded: set[str]
) -> dict[str, str | None]:
    """Run the checks of an endpoint in this process and in others, and return the reason of each failure by name.

    The reason is None for a check that passed or is excluded. A check that several processes have fails if it fails in
    one of them. The result is in upstream's order.

    Args:
        endpoint: `healthz`, `livez` or `readyz`.
        checks: the checks of this process by name.
        remote: the checks of other processes.
        excluded: names of checks, or of groups of checks (`_group`), that do not count.
    """

    async def own() -> Mapping[str, str | None]:
        wanted = [name for name in checks if excluded.isdisjoint((name, _group(name)))]
        reasons = await asyncio.gather(*(_run(endpoint, name, checks[name]) for name in wanted))
        return {**dict.fromkeys(checks), **dict(zip(wanted, reasons, strict=True))}

    merged: dict[str, str | None] = {}
    for results in await asyncio.gather(own(), *(other.results(endpoint) for other in remote)):
        for name, failure in results.items():
            merged[name] = merged.get(name) or failure
    return {name: merged[name] if excluded.isdisjoint((name, _group(name))) else None for name in _ordered(merged)}


async def _check_all(
    endpoint: str, checks: dict[str, Check], remote: Sequence[RemoteChecks], request: Request
) -> Response:
    query = request.query().lists
    excluded = set(query.get("exclude", []))
    lines: list[str] = []
    failed: list[str] = []
    results = await _results(endpoint, checks, remote, excluded)
    for name, failure in results.items():
        if name in excluded:
            lines.append(f"[+]{name} excluded: ok")
        elif _group(name) in excluded:
            lines.append(f"[+]{name} excluded with {_group(name)}: ok")
        elif failure is None:
            lines.append(f"[+]{name} ok")
        else:
            lines.append(f"[-]{name} failed: reason withheld")
            failed.append(f"{name}: {failure}")
    unknown = sorted(excluded - results.keys() - {_group(name) for name in results if name not in excluded})
    warning = f"warn: some health checks cannot be excluded: no matches for {_quote_all(unknown)}\n" if unknown else ""
    text = "\n".join(lines) + "\n"
    if failed:
        log.info("%s check failed: %s", endpoint, "; ".join(failed))
        return Response(500, list(_TEXT), f"{text}{warning}{endpoint} check failed\n".encode())
    if "verbose" not in query:
        return Response(200, list(_TEXT), b"ok")
    return Response(200, list(_TEXT), f"{text}{warning}{endpoint} check passed\n".encode())


async def _run(endpoint: str, name: str, check: Check) -> str | None:
    """Run a check for at most 10 seconds, and return the reason of its failure, or None if it passed.

    The result is counted for /metrics/slis.

    Args:
        endpoint: `healthz`, `livez` or `readyz`, for the metric.
        name: the name of the check, for the metric.
        check: the check.
    """
    failure: str | None = None
    try:
        async with asyncio.timeout(10):
            await check()
    except Exception as error:
        failure = str(error) or type(error).__name__
    _CHECK.set((name, endpoint), 0.0 if failure else 1.0)
    _CHECKS.add((name, "error" if failure else "success", endpoint))
    return failure


def _quote_all(names: list[str]) -> str:
    from tetrapod.machinery.golang.quoting import go_quote

    return ",".join(go_quote(name) for name in names)
