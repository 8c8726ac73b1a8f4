"""`PeerDiscovery`: the resources of the peer API servers, which their identity Leases name.

Upstream: staging/src/k8s.io/apiserver/pkg/util/peerproxy/peer_discovery.go.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from tetrapod.aggregator.backends import read_document
from tetrapod.aggregator.discovery import NotDiscovered
from tetrapod.aggregator.external_documents import Versions, read_aggregated
from tetrapod.aggregator.peerproxy.exclusion import Exclusion
from tetrapod.aggregator.peerproxy.merging import merge_groups
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.generic.discovery import documents
from tetrapod.generic.discovery.negotiation import is_aggregated
from tetrapod.generic.http.request import HeaderList
from tetrapod.generic.metrics.counters import Counter
from tetrapod.generic.proxy import BackendError, BackendPool, ClientTLS, Endpoint
from tetrapod.generic.proxy.headers import identity_headers
from tetrapod.generic.server.kubernetes_service.identity import LABEL, LEASES, NAMESPACE, PEER_ADDRESS, SERVER
from tetrapod.machinery.gvk import GroupVersion, GroupVersionResource, Object
from tetrapod.machinery.user import UserInfo

PROXIED: Final[HeaderList] = [(b"x-kubernetes-peer-proxied", b"true")]
"""The header of a request from a peer. The server that receives it serves the request itself."""
REROUTED: Final = Counter(
    "apiserver_rerouted_request_total",
    "Total number of requests that were proxied to a peer kube-apiserver because the local apiserver was not capable "
    "of serving it, broken down by 'group', 'version', and 'resource' indicating the GVR of the request. If all three "
    'are empty (""), the request is a discovery request.',
    ("code", "group", "version", "resource"),
)
_ERRORS: Final = Counter(
    "apiserver_peer_discovery_sync_errors_total",
    "Total number of errors encountered while syncing discovery information from a peer kube-apiserver",
    ("type",),
)
_ACCEPT: Final = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer,"
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
)
_APISERVER: Final = UserInfo("system:apiserver", uid="system:apiserver", groups=("system:authenticated",))
_TIMEOUT: Final = 10.0
_LIVE: Final = 30.0
"""Seconds after the last renewal of its identity Lease for which a peer counts as live: three renewals."""


class PeerConfig(NamedTuple):
    """How to find and trust peers.

    Attributes:
        server_id: the name of this server's identity Lease.
        tls: the TLS configuration of connections to peers.
    """

    server_id: str
    tls: ClientTLS


class PeerDiscovery:
    """The discovery documents of the peers, without excluded group-versions.

    Args:
        config: how to find and trust peers.
        client: lists and watches the identity Leases.
        pool: the connections.
        exclusion: the group-versions that are not taken from peers.

    Attributes:
        leases: the informer of identity Leases; the owner runs it.
        queue: the queue of the peers whose documents are fetched; the owner runs it.
    """

    def __init__(self, config: PeerConfig, client: Client, pool: BackendPool, exclusion: Exclusion) -> None:
        self._config = config
        self._pool = pool
        self._exclusion = exclusion
        self._fetched = 0
        self._versions: dict[str, Versions] = {}  # by the name of the identity Lease
        self._renewed: dict[str, float] = {}  # by the same name, when the last renewal was observed
        exclusion.expired = self._expired
        self.leases = Informer(client, LEASES, NAMESPACE, label_selector=f"{LABEL}={SERVER}")
        self.leases.handlers.append(self._lease_changed)
        self.queue: WorkQueue[str] = WorkQueue("peer-discovery-cache-sync", self._sync)

    @property
    def generation(self) -> int:
        """A number that grows with every change of the documents."""
        return self._fetched + self._exclusion.generation

    def excludes(self, gvr: GroupVersionResource) -> bool:
        """Return whether the group-version of a resource is never taken from peers."""
        return GroupVersion(gvr.group, gvr.version) in self._exclusion.versions

    def serving(self, gvr: GroupVersionResource) -> list[str]:
        """Return the IDs of the peers that serve a resource; [] if none does, or if its group-version is excluded."""
        if self.excludes(gvr):
            return []
        gv = GroupVersion(gvr.group, gvr.version)
        return [
            server
            for server, versions in self._versions.items()
            if any(resource["resource"] == gvr.resource for resource in versions.get(gv, {}).get("resources") or ())
        ]

    def live(self, servers: Sequence[str]) -> Sequence[str]:
        """Return those of the peers that renewed their identity Leases in the last 30 seconds, or all if none did."""
        since = time.monotonic() - _LIVE
        return [server for server in servers if self._renewed.get(server, since) > since] or servers

    def endpoint(self, server: str) -> Endpoint | None:
        """Return the endpoint of a peer by the address in its identity Lease, or None if it has none."""
        lease = self.leases.get(NAMESPACE, server) or {}
        annotations = (lease.get("metadata") or {}).get("annotations") or {}
        try:
            address = urlsplit(f"//{annotations.get(PEER_ADDRESS, '')}")
            if address.hostname and address.port:
                return Endpoint(address.hostname, address.port, self._config.tls)
        except ValueError:  # the address or its port is invalid
            pass
        return None

    def merged(self, local: list[Object]) -> list[Object]:
        """Return the items of the discovery document of /apis, with the groups and resources of peers.

        Args:
            local: the items of this server.
        """
        return merge_groups(
            self._config.server_id, local, {server: self._groups(own) for server, own in self._versions.items()}
        )

    def _groups(self, versions: Versions) -> list[Object]:
        groups: dict[str, list[Object]] = {}
        for gv, version in versions.items():
            if gv.group and gv not in self._exclusion.versions:
                groups.setdefault(gv.group, []).append({**version, "freshness": "Current"})
        return [documents.aggregated_group(group, members) for group, members in groups.items()]

    def _lease_changed(self, old: Object | None, new: Object | None) -> None:
        name = (new or old or {})["metadata"]["name"]
        if name == self._config.server_id:
            return
        if new is None:
            self._renewed.pop(name, None)
        elif old is None or _renew_time(old) != _renew_time(new):
            self._renewed[name] = time.monotonic()
        if old is None or new is None or _holder(old) != _holder(new):
            self.queue.add(name)

    def _expired(self, gv: GroupVersion) -> None:
        """Drop a deleted group-version from the documents, and fetch them again: a peer may serve it as its own."""
        for server, versions in list(self._versions.items()):
            if gv in versions:
                self._keep(server, {other: version for other, version in versions.items() if other != gv})
        for _, name in self.leases.objects:
            if name != self._config.server_id:
                self.queue.add(name)

    async def _sync(self, server: str) -> None:
        """Fetch the documents of a peer, or drop them if its identity Lease is gone.

        Raises:
            NotDiscovered: a document cannot be fetched.
        """
        if not _holder(self.leases.get(NAMESPACE, server) or {}):
            self._keep(server, {})
            return
        endpoint = self.endpoint(server)
        if endpoint is None:
            _ERRORS.add(("hostport_resolution",))
            self._keep(server, {})
            raise NotDiscovered(f"{server} has no address")
        versions: dict[GroupVersion, Object] = {}
        failed = ""
        for path in ("/api", "/apis"):
            try:
                async with asyncio.timeout(_TIMEOUT):
                    versions.update(await self._fetch(endpoint, path))
            except (BackendError, TimeoutError, ValueError, OSError) as error:
                _ERRORS.add(("fetch_discovery",))
                failed = f"{path} of {server}: {type(error).__name__}: {error}"
        self._keep(server, versions)
        if failed:
            raise NotDiscovered(failed)

    def _keep(self, server: str, versions: Versions) -> None:
        if versions:
            self._versions[server] = versions
        else:
            self._versions.pop(server, None)
        self._fetched += 1

    async def _fetch(self, endpoint: Endpoint, path: str) -> Versions:
        headers = [*identity_headers(_APISERVER), (b"accept", _ACCEPT.encode()), *PROXIED]
        connection = await self._pool.exchange(endpoint, "GET", path, headers)
        REROUTED.add((str(connection.status), "", "", ""))
        document = await read_document(connection)
        if document.status != 200 or not is_aggregated(document.media_type):
            raise ValueError(f"status {document.status}, {document.media_type}")
        return read_aggregated(document.body)


def _holder(lease: Object) -> str | None:
    return (lease.get("spec") or {}).get("holderIdentity")


def _renew_time(lease: Object) -> str | None:
    return (lease.get("spec") or {}).get("renewTime")
