"""The non-resource endpoints of a server: a table of exact paths and prefixes, each with its `Handler`.

It is not a web framework: importing FastAPI costs 0.2 s and 21 MB in each process, a quarter of the start-up and of the
memory budget, and its routing of other methods and trailing slashes differs from upstream's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import orjson

from tetrapod.generic.configuration.effective_version import effective_version
from tetrapod.generic.configuration.version import version_info
from tetrapod.generic.http.error_responses import not_found
from tetrapod.generic.http.headers import JSON_TYPE, TEXT_TYPE
from tetrapod.generic.http.negotiation.accept import JSON
from tetrapod.generic.http.negotiation.media_types import check_route_accept, check_route_content_type
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.observability.exposition import metrics_response
from tetrapod.generic.server.health import Health
from tetrapod.machinery import status
from tetrapod.machinery.status import StatusError


class Routes:
    """The table of paths. Exact paths precede prefixes; among prefixes, the first one added precedes."""

    def __init__(self) -> None:
        self._exact: dict[str, Handler] = {}
        self._prefixes: list[tuple[str, Handler]] = []
        self._listed: list[str] = []

    def add(self, path: str, handler: Handler, *, listed: bool = True) -> None:
        """Serve exactly `path` with `handler`. A `listed` path is shown by `/`."""
        self._exact[path] = handler
        if listed:
            self._listed.append(path)

    def add_rest(self, path: str, handler: Handler) -> None:
        """Serve `path` as upstream's REST routes do, for instance `/version`.

        It accepts GET only (else 405), with or without trailing slashes. Paths below it get a 404 with a Status.
        """
        guarded = get_only(handler)

        async def below(request: Request) -> Response:
            if request.path.rstrip("/") != path:
                raise status.unknown_path()
            return await guarded(request)

        self.add(path, guarded)
        self._prefixes.append((path + "/", below))

    def add_prefix(self, prefix: str, handler: Handler, *, listed: bool = False) -> None:
        """Serve all paths that start with `prefix`, unless they are added exactly.

        A `listed` prefix is shown by `/`.
        """
        self._prefixes.append((prefix, handler))
        if listed:
            self._listed.append(prefix)

    def find(self, path: str) -> Handler | None:
        """Return the handler of a path, or None if it is not served."""
        handler = self._exact.get(path)
        if handler is not None:
            return handler
        return next((h for prefix, h in self._prefixes if path.startswith(prefix)), None)

    def paths(self) -> Iterable[str]:
        """Return the listed paths and prefixes, in the order in which they were added."""
        return self._listed


def get_only(handler: Handler) -> Handler:
    """Return a handler that raises StatusError 405 for all methods but GET, and else calls `handler`."""

    async def guarded(request: Request) -> Response:
        if request.method != "GET":
            raise status.method_not_allowed()
        return await handler(request)

    return guarded


def unknown_path_response(lifecycle: Lifecycle) -> Response:
    """Return the response for a path that no handler serves, a plain-text 404.

    Upstream: staging/src/k8s.io/apiserver/pkg/util/notfoundhandler/not_found_handler.go

    Raises:
        StatusError: 503, because the server does not know all paths yet. A 404 would make the garbage collector and the
            namespace controller delete objects.
    """
    if not lifecycle.has_all_paths():
        raise paths_incomplete()
    return not_found()


def paths_incomplete() -> StatusError:
    """Return the 503 for a path that may exist although the server does not know it yet."""
    text = "the request has been made before all known HTTP paths have been installed, please try again"
    return status.service_unavailable(text, 5)


def health_handler(health: Health) -> Handler:
    """Return the handler of /healthz, /livez, /readyz and the paths below; unknown ones get a plain-text 404."""

    async def handle(request: Request) -> Response:
        return await health.handle(request) or not_found()

    return handle


async def version(request: Request) -> Response:
    """Serve `/version` as JSON.

    Raises:
        StatusError: 415 for a Content-Type other than JSON; 406 if the client does not accept JSON.
    """
    check_route_content_type(request, (JSON,))
    check_route_accept(request, (JSON,))
    return Response(
        200,
        [JSON_TYPE],
        orjson.dumps(version_info(*effective_version()[:2]), option=orjson.OPT_INDENT_2),
    )


async def metrics(request: Request) -> Response:
    """Serve `/metrics`.

    DELETE resets the metrics, any other method returns them in the format that the client accepts.
    """
    from tetrapod.generic.metrics.registry import reset
    from tetrapod.generic.observability import process_metrics

    process_metrics.register(asyncio.get_running_loop())
    if request.method == "DELETE":
        reset()
        return metrics_reset()
    return await metrics_response(request, *await process_metrics.scraped())


async def slis(request: Request) -> Response:
    """Serve `/metrics/slis`: metrics of the health checks that ran. DELETE resets their counters."""
    from tetrapod.generic.metrics.metric import SLIS
    from tetrapod.generic.metrics.registry import reset_slis, with_series

    if request.method == "DELETE":
        reset_slis()
        return metrics_reset()
    return await metrics_response(request, with_series(SLIS))


def metrics_reset() -> Response:
    """Return the 200 response to a DELETE of metrics, after the caller has reset them.

    Upstream: component-base/metrics/http.go, HandlerWithReset
    """
    return Response(200, [TEXT_TYPE], b"metrics reset\n")
