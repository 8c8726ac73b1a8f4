"""The discovery endpoints of one server: `/api`, `/apis`, groups and versions, in the format that the client requests.

Documents are created on demand and cached until the set of resources changes (`DiscoverySource.generation`).
Upstream: k8s.io/apiserver/pkg/endpoints/discovery.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final, Protocol

import orjson

from tetrapod.generic.discovery.negotiation import (
    aggregated_media_type,
    answer_document,
    wants_no_peers,
)
from tetrapod.generic.http.negotiation.accept import MEDIA_TYPES, with_cbor
from tetrapod.generic.http.negotiation.documents import encode_document
from tetrapod.generic.http.negotiation.media_types import check_route_accept, check_route_content_type, wants_pretty
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.metrics.counters import Counter
from tetrapod.generic.observability.request_metrics import AGGREGATED_DISCOVERY
from tetrapod.machinery import status
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import method_not_allowed

_AGGREGATIONS: Final = Counter(
    "aggregator_discovery_aggregation_count_total", "Counter of number of times discovery was aggregated"
)

_HITS: Final = Counter(
    "aggregator_discovery_peer_aggregated_cache_hits_total",
    "Counter of number of times discovery was served from peer-aggregated cache",
)
_MISSES: Final = Counter(
    "aggregator_discovery_peer_aggregated_cache_misses_total",
    "Counter of number of times discovery was aggregated across all API servers",
)
_WITHOUT_PEERS: Final = Counter(
    "aggregator_discovery_nopeer_requests_total",
    "Counter of number of times no-peer (non peer-aggregated) discovery was requested",
)


class DiscoverySource(Protocol):
    """The groups and resources that discovery describes.

    `generation` is a different number after each change of the groups or resources. `core_versions` are the versions of
    the core group in order of preference.
    """

    @property
    def generation(self) -> int: ...

    def core_versions(self) -> list[str]: ...
    def groups(self) -> list[Object]:
        """Return the APIGroup documents without kind and apiVersion, in the order of `/apis`.

        The core group is not included.
        """
        ...

    def resources(self, group: str, version: str) -> Object | None:
        """Return the APIResourceList of a group-version as an object, or None if it is not served here."""
        ...

    def aggregated(self, core: bool) -> list[Object]:
        """Return the APIGroupDiscovery items of `/api` if `core`, else of `/apis`, in order."""
        ...


class PeerDocuments(Protocol):
    """The discovery documents of peer API servers. `generation` is a different number after each change."""

    @property
    def generation(self) -> int: ...
    def merged(self, local: list[Object]) -> list[Object]:
        """Return the aggregated discovery items of `/apis` of this server and its peers.

        `local` are the items of this server.
        """
        ...


class DiscoveryHandlers:
    """The handlers of the discovery paths of one server.

    Upstream has a route (NewAPIGroupHandler) for some groups: for those, the method must be GET and Accept is checked.
    """

    def __init__(
        self,
        source: DiscoverySource,
        routed: Callable[[str], bool],
        server_address: str = "",
        peers: PeerDocuments | None = None,
    ) -> None:
        """Create the handlers.

        Args:
            source: the groups and resources.
            routed: returns whether upstream has a route for a group. The documents of other groups are returned for any
                method.
            server_address: the advertised host:port (upstream: discovery.DefaultAddresses); "" to use the Host header.
            peers: the documents of peers, which /apis includes unless a client requests the profile `nopeer`.
        """
        self._source = source
        self._peers = peers
        self._routed = routed
        self._server_address = server_address
        self._cached: dict[Any, tuple[tuple[int, int], bytes, str]] = {}

    async def handle(self, request: Request) -> Response | None:
        """Return the response to a non-resource path below /api or /apis, or None if its group is unknown.

        Raises:
            StatusError: 404, the version is unknown or the path is longer; 405, 406 or 415 for a method or media type
                that is not supported.
        """
        parts = request.path.split("/")  # "", "apis", group, version, …
        answer = self._core(request, parts) if parts[1] == "api" else self._document_of(request, parts)
        if request.audit is not None and answer is not None:
            await request.audit.record_response(answer)
        return answer

    def _core(self, request: Request, parts: list[str]) -> Response:
        path = request.path.rstrip("/")
        if path == "/api":
            return self._versions(request)
        if path != f"/api/{parts[2]}" or not parts[2]:
            raise status.unknown_path()
        return self._resource_list(request, "", parts[2])

    def _document_of(self, request: Request, parts: list[str]) -> Response | None:
        if request.path in ("/apis", "/apis/"):
            return self._group_list(request)
        group = parts[2]
        document = next((g for g in self._source.groups() if g["name"] == group), None)
        if document is None:
            return None
        rest = "/".join(parts[3:]).rstrip("/")
        if not rest:
            if self._routed(group):
                _check_route(request)
            return answer_document(request, {"kind": "APIGroup", "apiVersion": "v1", **document})
        if "/" in rest:
            raise status.unknown_path()
        return self._resource_list(request, group, rest)

    def _versions(self, request: Request) -> Response:
        _check_route(request)
        media_type = aggregated_media_type(request)
        if media_type is not None:
            return self._aggregated(request, True, media_type)
        address = self._server_address or request.header(b"host")
        document = {
            "kind": "APIVersions",
            "versions": self._source.core_versions(),
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
        }
        return answer_document(request, document)

    def _group_list(self, request: Request) -> Response:
        media_type = aggregated_media_type(request)
        if media_type is not None and request.path == "/apis":
            return self._aggregated(request, False, media_type)
        return answer_document(request, {"kind": "APIGroupList", "apiVersion": "v1", "groups": self._source.groups()})

    def _resource_list(self, request: Request, group: str, version: str) -> Response:
        document = self._source.resources(group, version)
        if document is None:
            raise status.unknown_path()
        _check_route(request)
        return answer_document(request, document)

    def _aggregated(self, request: Request, core: bool, media_type: str) -> Response:
        request.state[AGGREGATED_DISCOVERY] = True
        pretty = wants_pretty(request)
        peers = self._peers
        if peers is not None and wants_no_peers(request):
            _WITHOUT_PEERS.add()
            peers = None
        if core:
            peers = None
        generation = self._source.generation, peers.generation if peers is not None else 0
        key = (core, media_type, pretty, peers is not None)
        cached = self._cached.get(key)
        if cached is None or cached[0] != generation:
            _AGGREGATIONS.add()
            items = self._source.aggregated(core)
            if peers is not None:
                _MISSES.add()
                items = peers.merged(items)
            document = {
                "kind": "APIGroupDiscoveryList",
                "apiVersion": "apidiscovery.k8s.io/v2",
                "metadata": {},
                "items": items,
            }
            etag = hashlib.sha512(orjson.dumps(document)).hexdigest().upper()
            body = encode_document(document, media_type.partition(";")[0], pretty=pretty)
            cached = self._cached[key] = (generation, body, etag)
        elif peers is not None:
            _HITS.add()
        _, body, etag = cached
        headers = [
            (b"content-type", media_type.encode()),
            (b"etag", f'"{etag}"'.encode()),
            (b"vary", b"Accept"),
            (b"cache-control", b"public"),
        ]
        if request.header(b"if-none-match") == f'"{etag}"':
            return Response(304, headers[1:])
        return Response(200, headers, body)


def _check_route(request: Request) -> None:
    """Check the method, the Content-Type header and the Accept header in upstream's order.

    Raises:
        StatusError: 405 for a method other than GET; 415 for a media type that objects do not have;
            406 if the client accepts no offered media type.
    """
    if request.method != "GET":
        raise method_not_allowed()
    check_route_content_type(request, with_cbor(MEDIA_TYPES))
    check_route_accept(request)
