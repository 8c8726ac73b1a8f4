"""`ExternalProxy`: passes a request on to the API server that is registered for its group-version.

Path and query are written anew, of what the filters have read in them, so that the backend cannot read something else. Upstream:
kube-aggregator/pkg/apiserver/handler_proxy.go, k8s.io/apimachinery/pkg/util/proxy/{upgradeaware,transport}.go.
"""

from __future__ import annotations

import logging
import re
from typing import Final
from urllib.parse import quote

from tetrapod.aggregator.apiservice import is_available
from tetrapod.aggregator.backends import Backends
from tetrapod.generic.certificates.bundles import UnusableBundle
from tetrapod.generic.proxy import BackendError, Endpoint, NotUpgraded, forward
from tetrapod.generic.proxy.headers import Unsendable, forwarded_headers, upgrade_of, where_from, without_cors
from tetrapod.generic.proxy.resolver import Unresolvable
from tetrapod.generic.request import Request, Response
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.requestinfo import encoded_query

log = logging.getLogger(__name__)

_SAFE: Final = "$&+,/:;=@~"
"""What Go's net/url leaves as it is in a path, beyond letters, digits and `-_.`."""
_PLAIN: Final = re.compile(r"(?:/[\w$&+,:;=@~-][\w$&+,:;=@~.-]*)+", re.ASCII)
"""A path that is escaped, and clean, as it stands."""
_WHEREABOUTS: Final = frozenset({b"x-forwarded-uri", b"x-forwarded-host", b"x-forwarded-proto"})
_HTTPS: Final = (b"x-forwarded-proto", b"https")
_BROKEN: Final = "net/http: HTTP/1.x transport connection broken: "


class ExternalProxy:
    """Answers a request for an external group-version. Without `redirects` a backend's redirect is refused."""

    def __init__(self, backends: Backends, *, redirects: bool = False) -> None:
        self._backends = backends
        self._redirects = redirects

    async def handle(self, obj: Object, request: Request) -> Response:
        if not is_available(obj):
            return unavailable()
        try:
            endpoint = self._backends.endpoint(obj)
        except UnusableBundle as error:
            return _refusal(500, str(error))
        except Unresolvable as error:
            log.info("error resolving %s: %s", obj["metadata"]["name"], error)
            return unavailable()
        upgrade = request.upgrade is not None and upgrade_of(request.headers)
        try:
            return await (self._upgraded(endpoint, request) if upgrade else self._answered(endpoint, request))
        except (BackendError, Unsendable) as error:
            return _refusal(503, _upgrade_text(error) if upgrade else f"error trying to reach service: {error}")

    async def _upgraded(self, endpoint: Endpoint, request: Request) -> Response:
        target, _ = _target(request)
        return await forward(self._backends.pool, endpoint, request, target=target, only_upgraded=True)

    async def _answered(self, endpoint: Endpoint, request: Request) -> Response:
        target, where = _target(request)
        sent = forwarded_headers(request.headers, request.user, request.remote, request.audit_id)
        headers = [header for header in sent if header[0] not in _WHEREABOUTS]  # that says where it goes, not where it comes from
        headers += ((b"x-forwarded-uri", where), (b"x-forwarded-host", endpoint.authority.encode("latin-1")), _HTTPS)
        response = await forward(self._backends.pool, endpoint, request, target=target, headers=headers, redirects=self._redirects)
        response.headers = without_cors(response.headers)
        return response


def unavailable() -> Response:
    return _refusal(503, "service unavailable")


def _refusal(code: int, text: str) -> Response:
    """As Go's http.Error."""
    return Response(code, [(b"content-type", b"text/plain; charset=utf-8"), (b"x-content-type-options", b"nosniff")], f"{text}\n".encode())


def _target(request: Request) -> tuple[str, bytes]:
    """Path and query for the backend, and X-Forwarded-Uri."""
    if _PLAIN.fullmatch(request.path):
        path, where = request.path, request.path.encode()
    else:
        path = quote(request.path, safe=_SAFE, errors="surrogateescape")
        where = where_from(path).encode("latin-1")
    query = encoded_query(request.query_string) if request.query_string else ""
    return f"{path}?{query}" if query else path, where


def _upgrade_text(error: Exception) -> str:
    """An upgrade is a connection of its own: what goes wrong with it is said in other words."""
    if isinstance(error, NotUpgraded) or not isinstance(error, BackendError):
        return str(error)
    if error.unsent:
        return f"error dialing backend: {error}"
    return "unexpected EOF" if str(error) == "EOF" else str(error).removeprefix(_BROKEN)
