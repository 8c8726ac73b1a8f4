"""`PeerService`: a peer service, as a handler of requests and as a source of discovery documents."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import orjson

from tetrapod.aggregator.delegation.connection import PeerConnection
from tetrapod.aggregator.delegation.documents import PeerDocuments
from tetrapod.aggregator.delegation.groups import AGGREGATOR_GROUP, service_of
from tetrapod.aggregator.delegation.peer_checks import PeerChecks
from tetrapod.generic.discovery import documents
from tetrapod.generic.discovery.negotiation import AGGREGATED
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.lifecycle import RETRY_SECONDS
from tetrapod.generic.observability.tracing import peer_traces
from tetrapod.generic.observability.tracing.spans import current, start
from tetrapod.generic.proxy import BackendError, BackendPool, ClientTLS
from tetrapod.generic.proxy.forward import forward
from tetrapod.generic.proxy.headers import DROPPED_FROM_PEERS, Unsendable, forwarded_headers
from tetrapod.generic.server.resource_config import EVERYTHING, ResourceConfig
from tetrapod.machinery import status
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.types import groups as builtin_groups

log = logging.getLogger(__name__)

_ACCEPT: Final = "application/json;" + ";".join(f"{key}={value}" for key, value in AGGREGATED)
_SHORT_INTERVAL: Final = 0.5
"""Seconds between refreshes of discovery: of extensions, whose groups change, and after an error."""
_LONG_INTERVAL: Final = 30.0
_FIRST_INTERVAL: Final = 0.05
"""Seconds until the second attempt to read the documents of a service that has not answered yet, doubled for each
further one up to `_SHORT_INTERVAL`. Services that are started together are ready up to half a second sooner.
"""


class PeerService:
    """A handler that forwards requests to a peer service, which is core, extensions or auth as a separate process.

    It is also a `DiscoverySource` of the service's API groups.

    Args:
        name: the name of the service: "core", "extensions" or "auth".
        pool: the pool of connections.
        url: the base URL of the service.
        tls: the TLS configuration, with the aggregator's front-proxy certificate.
        resources: the built-in resources that the service serves.

    Attributes:
        name: the name of the service.
        generation: a number that grows with each change of its discovery documents.
        discovered: set once its discovery documents have been read. They are available from then on, even if the
            service is not.
        documents: its OpenAPI documents.
        checks: its health checks.
    """

    def __init__(
        self, name: str, pool: BackendPool, url: str, tls: ClientTLS, resources: ResourceConfig = EVERYTHING
    ) -> None:
        self.name = name
        self._connection = PeerConnection(name, pool, url, tls)
        self._pool, self._endpoint = pool, self._connection.endpoint
        self._items: dict[bool, list[Object]] = {True: [], False: []}
        self._etags: dict[bool, str] = {}
        self._builtin: dict[str, list[str]] = {}  # the served versions of each group
        for group in builtin_groups():
            versions = [
                version for version in (*group.versions, *group.optional) if resources.serves(group.name, version)
            ]
            if versions and group.name != AGGREGATOR_GROUP and service_of(group.name) == name:
                self._builtin[group.name] = versions
        self.generation = 0
        self.discovered = asyncio.Event()
        self.documents = PeerDocuments(self._connection)
        self.checks = PeerChecks(self._connection)

    async def handle(self, request: Request) -> Response:
        """Forward a request with the headers of its user and return the response.

        Raises:
            StatusError: 503, the service cannot be reached. If nothing was sent, the error asks the client to retry.
        """
        try:
            if current() is not None:
                return await self._handle_traced(request)
            audit = request.audit
            if audit is None:
                return await forward(self._pool, self._endpoint, request, dropped=DROPPED_FROM_PEERS)
            from tetrapod.generic.audit import peer_audit

            headers = forwarded_headers(
                request.headers, request.user, request.remote, request.audit_id
            ) + peer_audit.request_header(audit)
            response = await forward(self._pool, self._endpoint, request, headers=headers, dropped=DROPPED_FROM_PEERS)
            await peer_audit.take_response(audit, request, response)
            return response
        except (BackendError, Unsendable) as error:
            log.info("%s cannot be reached: %s", self.name, error)
            unsent = isinstance(error, BackendError) and error.unsent
            raise status.service_unavailable(
                f"error trying to reach service: {error}", RETRY_SECONDS if unsent else 0
            ) from None

    async def _handle_traced(self, request: Request) -> Response:
        """Forward a request within a span of the current trace, and return the response.

        The spans that the service returns in a header of its response are added to the trace, as children of that span.

        Raises:
            BackendError: the service cannot be reached, or its response is malformed.
            Unsendable: the identity of the user contains characters that headers cannot contain.
        """
        from tetrapod.generic.audit import peer_audit

        with start(f"service {self.name}") as span:
            headers = forwarded_headers(
                request.headers, request.user, request.remote, request.audit_id
            ) + peer_traces.request_headers(span)
            audit = request.audit
            if audit is not None:
                headers += peer_audit.request_header(audit)
            response = await forward(
                self._pool,
                self._endpoint,
                request,
                headers=headers,
                target=peer_traces.target(request, span),
                dropped=DROPPED_FROM_PEERS,
            )
            if audit is not None:
                await peer_audit.take_response(audit, request, response)
            peer_traces.graft(response, span)
            return response

    # --- DiscoverySource

    def core_versions(self) -> list[str]:
        """Return the versions of the core group if this service serves it, else []."""
        return list(self._builtin.get("", ()))

    def groups(self) -> list[Object]:
        """Return the APIGroup objects of the built-in groups that the service serves.

        Groups of custom resources are registered one by one as APIServices.
        """
        return [documents.api_group(name, versions) for name, versions in self._builtin.items() if name]

    def resources(self, group: str, version: str) -> Object | None:
        """Return None, because requests for the resources of a version are forwarded to the service."""
        return None

    def aggregated(self, core: bool) -> list[Object]:
        """Return the items of the service's aggregated discovery document, as of the last refresh.

        Args:
            core: True for the document of `/api`, False for `/apis`.
        """
        return self._items[core]

    async def follow(self) -> None:
        """Refresh the aggregated discovery documents periodically, until cancelled.

        The interval is 0.5 seconds for extensions and after an error, and 30 seconds for core and auth. It is shorter
        until the service has answered for the first time. Errors are logged.
        """
        first = _FIRST_INTERVAL
        while True:
            try:
                for core in (True, False):
                    await self._refresh(core)
                if not self.checks.known:
                    await self.checks.refresh()
                self.discovered.set()
                interval = _SHORT_INTERVAL if self.name == "extensions" else _LONG_INTERVAL
            except (BackendError, TimeoutError, ValueError, KeyError) as error:
                log.debug("discovery of %s: %s", self.name, error)
                interval = _SHORT_INTERVAL if self.discovered.is_set() else first
                first = min(2 * first, _SHORT_INTERVAL)
            await asyncio.sleep(interval)

    async def _refresh(self, core: bool) -> None:
        code, headers, body = await self._connection.get(
            "/api" if core else "/apis", _ACCEPT, self._etags.get(core, "")
        )
        if code == 304:
            return
        if code != 200:
            raise ValueError(f"status {code}")
        self._items[core] = orjson.loads(body)["items"]
        self._etags[core] = next((v.decode("latin-1") for k, v in headers if k == b"etag"), "")
        self.generation += 1
