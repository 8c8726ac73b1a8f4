"""The proxy to external API servers, which are registered for a group-version by an APIService.

Path and query are encoded again from the values that the filters parsed, so that the backend cannot interpret them
differently.

Upstream: kube-aggregator/pkg/apiserver/handler_proxy.go;
k8s.io/apimachinery/pkg/util/proxy/{upgradeaware,transport}.go.
"""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from tetrapod.aggregator.apiservice import is_available
from tetrapod.aggregator.backends import Backends
from tetrapod.generic.authentication.requestheader import REMOTE_UID_GATE
from tetrapod.generic.certificates.bundles import UnusableBundle
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.http.error_responses import http_error
from tetrapod.generic.http.request import HeaderList, Request, Response
from tetrapod.generic.proxy import BackendError, BackendPool, Endpoint, NotUpgraded, forward
from tetrapod.generic.proxy.headers import (
    DROPPED_FOR_BROWSERS,
    Unsendable,
    forwarded_headers,
    forwarded_uri,
    upgrade_of,
)
from tetrapod.generic.proxy.resolver import Unresolvable
from tetrapod.machinery.boundedcache import bounded
from tetrapod.machinery.golang.query import encoded_query
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.user import UserInfo

log = logging.getLogger(__name__)

_SAFE: Final = "$&+,/:;=@~"
"""The characters that Go's net/url does not escape in a path, beyond letters, digits and `-_.`."""
_PLAIN: Final = re.compile(r"(?:/[\w$&+,:;=@~-][\w$&+,:;=@~.-]*)+", re.ASCII)
"""Matches paths that need neither escaping nor cleaning."""
_HTTPS: Final = (b"x-forwarded-proto", b"https")
_BROKEN: Final = "net/http: HTTP/1.x transport connection broken: "


class ExternalProxy:
    """The proxy that forwards requests for external group-versions to the API servers of their APIServices.

    Args:
        backends: the connections to the external servers.
        redirects: whether redirects of API servers are returned to the client; if not, they are rejected.
    """

    def __init__(self, backends: Backends, *, redirects: bool = False) -> None:
        self._backends = backends
        self._redirects = redirects

    async def handle(self, obj: Object, request: Request) -> Response:
        """Forward a request to the API server of the external APIService `obj`.

        Errors are returned as responses with status 500 or 503 and a plain text, as upstream; nothing is raised.
        """
        if not is_available(obj):
            return unavailable()
        try:
            endpoint = self._backends.endpoint(obj)
        except UnusableBundle as error:
            return http_error(500, str(error))
        except Unresolvable as error:
            log.info("error resolving %s: %s", obj["metadata"]["name"], error)
            return unavailable()
        user = request.user if feature_gates.enabled(REMOTE_UID_GATE) else replace(request.user, uid="")
        return await forward_request(self._backends.pool, endpoint, request, user, redirects=self._redirects)


async def forward_request(
    pool: BackendPool,
    endpoint: Endpoint,
    request: Request,
    user: UserInfo,
    *,
    redirects: bool,
    added: HeaderList | None = None,
) -> Response:
    """Forward a request to another API server, with the identity of a user, and return the response.

    Errors are returned as responses with status 503 and a plain text, as upstream; nothing is raised.

    Args:
        pool: the connections.
        endpoint: the other server.
        request: the request.
        user: the user of the request.
        redirects: whether redirects are returned to the client; if not, they are rejected.
        added: further headers to send.
    """
    upgrade = request.upgrade is not None and upgrade_of(request.headers)
    target, uri = _written(request.path)
    if request.query_string and (query := encoded_query(request.query_string)):
        target = f"{target}?{query}"
    where: HeaderList | None = None
    if not upgrade:
        where = [(b"x-forwarded-uri", uri), (b"x-forwarded-host", endpoint.authority.encode("latin-1")), _HTTPS]
    try:
        headers = forwarded_headers(request.headers, user, request.remote, request.audit_id, where)
        if added:
            sent = {name for name, _ in added}
            headers = [header for header in headers if header[0] not in sent] + added
        if upgrade:
            return await forward(pool, endpoint, request, target=target, headers=headers, only_upgraded=True)
        return await forward(
            pool,
            endpoint,
            request,
            target=target,
            headers=headers,
            redirects=redirects,
            dropped=DROPPED_FOR_BROWSERS,
        )
    except (BackendError, Unsendable) as error:
        return http_error(503, _upgrade_text(error) if upgrade else f"error trying to reach service: {error}")


def unavailable() -> Response:
    """Return the response 503 "service unavailable" as plain text."""
    return http_error(503, "service unavailable")


@bounded(count=2048, size=1 << 20, largest=2048)
def _written(path: str) -> tuple[str, bytes]:
    """Escape a request path as Go does. Return it for the request line, and in normalized form for X-Forwarded-Uri.

    Args:
        path: the path of the request, unescaped.
    """
    if _PLAIN.fullmatch(path):
        return path, path.encode()
    escaped = quote(path, safe=_SAFE, errors="surrogateescape")
    return escaped, forwarded_uri(escaped).encode("latin-1")


def _upgrade_text(error: Exception) -> str:
    """Return the error text for a failed upgrade.

    It differs from that of other requests, because upstream dials a separate connection for upgrades.
    """
    if isinstance(error, NotUpgraded) or not isinstance(error, BackendError):
        return str(error)
    if error.unsent:
        return f"error dialing backend: {error}"
    return "unexpected EOF" if str(error) == "EOF" else str(error).removeprefix(_BROKEN)
