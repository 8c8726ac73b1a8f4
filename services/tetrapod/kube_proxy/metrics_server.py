"""The server of metrics, and of the mode and configuration of the proxy (--metrics-bind-address).

Upstream: cmd/kube-proxy/app/server.go, serveMetrics
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import orjson

from tetrapod.generic.http.error_responses import not_found
from tetrapod.generic.http.headers import JSON_TYPE, NOSNIFF, TEXT_TYPE
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.observability.debugging import profiles, zpages
from tetrapod.generic.observability.exposition import metrics_response
from tetrapod.generic.observability.process_metrics import scraped
from tetrapod.kube_proxy.configuration import Configuration
from tetrapod.kube_proxy.configuration_file import to_object

_COMPONENT: Final = "kube-proxy"
_PATHS: Final = ("/configz", "/flagz", "/healthz", "/metrics", "/proxyMode", "/statusz")
_FOREIGN: Final = ("apiserver_", "aggregator_", "etcd_")
"""The beginnings of the names of metrics that only API servers have. Modules that the proxy shares register them."""


class MetricsHandler:
    """Answers requests for metrics and settings.

    Args:
        configuration: the settings of the proxy.
        flags: the values of the flags by name.
    """

    def __init__(self, configuration: Configuration, flags: Mapping[str, str]) -> None:
        self._configuration = configuration
        self._pages = {
            "/statusz": zpages.statusz(lambda: _PATHS, _COMPONENT),
            "/flagz": zpages.flagz(lambda: flags, _COMPONENT),
        }

    async def __call__(self, request: Request) -> Response:
        """Answer a request."""
        if request.path in ("/healthz", "/healthz/ping"):
            return Response(200, [TEXT_TYPE, NOSNIFF], b"ok")
        if request.path == "/proxyMode":
            return Response(200, [TEXT_TYPE, NOSNIFF], self._configuration.mode.encode())
        if request.path in self._pages:
            return await self._pages[request.path](request)
        if request.path == "/configz":
            return Response(200, [JSON_TYPE, NOSNIFF], self._settings())
        if request.path == "/metrics":
            metrics, collectors = await scraped()
            return await metrics_response(
                request, [metric for metric in metrics if not metric.name.startswith(_FOREIGN)], collectors
            )
        if self._configuration.enable_profiling and request.path.startswith("/debug/pprof"):
            return await (profiles.redirect if request.path == "/debug/pprof" else profiles.handle)(request)
        return not_found()

    def _settings(self) -> bytes:
        return orjson.dumps({"kubeproxy.config.k8s.io": to_object(self._configuration)}, option=orjson.OPT_SORT_KEYS)
