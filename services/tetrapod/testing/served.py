"""An aggregated API server for tests, with a storage in memory, registered at the server that it extends."""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tetrapod.generic.admission.interface import Plugin
from tetrapod.generic.aggregated import AggregatedServer, Cluster, Kind, Settings
from tetrapod.generic.storage.sqlite.backend import SqliteBackend
from tetrapod.generic.storage.sqlite.snapshots import Snapshot
from tetrapod.testing.client import ApiError, Client, Object

NAMESPACE: Final = "default"
_AVAILABLE_TIMEOUT_SECONDS: Final = 20.0
_API_SERVICE: Final = ("apiregistration.k8s.io/v1", "APIService")


class Served:
    """An aggregated API server. Its methods are called in one event loop.

    Decisions of the cluster's authorizers are not cached, so that a change of RBAC applies to the next request.
    """

    def __init__(
        self, kinds: Sequence[Kind], name: str, kubeconfig: Path, data_dir: Path, admission: Sequence[Plugin]
    ) -> None:
        """Create the server, without listening.

        Args:
            kinds: the kinds to serve.
            name: the name of the server and of its Service.
            kubeconfig: the kubeconfig of the server that it extends.
            data_dir: the directory of its certificates.
            admission: plugins that are called for each write, in this order.
        """
        self._group_versions = sorted({gv for kind in kinds for gv, _ in kind.openapi()})
        self._name = name
        self._backend = SqliteBackend()
        hosts = ("localhost", "127.0.0.1", f"{name}.{NAMESPACE}.svc")
        cluster = Cluster.from_kubeconfig(str(kubeconfig))
        settings = Settings(cluster, data_dir, "127.0.0.1", 0, hosts, name, review_seconds=0)
        self._server = AggregatedServer(kinds, settings, backend=self._backend, admission=admission)

    @property
    def url(self) -> str:
        """The base URL of the server, after `start`."""
        return f"https://localhost:{self._server.port}"

    async def start(self) -> None:
        """Listen on a free port of 127.0.0.1."""
        await self._server.start()
        self._initial_state = await self._backend.snapshot()

    async def stop(self) -> None:
        """Stop the server. Call it only after `start`."""
        await self._server.stop()

    async def snapshot(self) -> Snapshot:
        """Return a snapshot of the stored objects."""
        return await self._backend.snapshot()

    async def restore(self, snapshot: Snapshot | None) -> None:
        """Restore a snapshot; None for the state after the start."""
        await self._backend.restore(snapshot or self._initial_state)

    def registration(self) -> list[Object]:
        """Return the Service and the APIServices that register the server."""
        port = self._server.port
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": self._name, "namespace": NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
        }
        return [service, *(self._api_service(group, version, port) for group, version in self._group_versions)]

    def _api_service(self, group: str, version: str, port: int) -> Object:
        return {
            "apiVersion": _API_SERVICE[0],
            "kind": _API_SERVICE[1],
            "metadata": {"name": f"{version}.{group}"},
            "spec": {
                "group": group,
                "version": version,
                "groupPriorityMinimum": 1000,
                "versionPriority": 15,
                "service": {"namespace": NAMESPACE, "name": self._name, "port": port},
                "caBundle": base64.b64encode(self._server.ca).decode(),
            },
        }


def wait_available(client: Client, objects: Sequence[Object]) -> None:
    """Wait until all APIServices among the objects are available, and their kinds are in discovery.

    Raises:
        TimeoutError: one of them is not after 20 seconds.
    """
    deadline = time.monotonic() + _AVAILABLE_TIMEOUT_SECONDS
    for obj in objects:
        if obj["kind"] != "APIService":
            continue
        while not _is_available(client, obj):
            if time.monotonic() > deadline:
                seconds = f"{_AVAILABLE_TIMEOUT_SECONDS:.0f}"
                raise TimeoutError(f"the APIService {obj['metadata']['name']} is not available after {seconds} s")
            time.sleep(0.01)


def _is_available(client: Client, api_service: Object) -> bool:
    current = client.get(*_API_SERVICE, api_service["metadata"]["name"])
    conditions = (current.get("status") or {}).get("conditions") or ()
    if not any(c["type"] == "Available" and c["status"] == "True" for c in conditions):
        return False
    spec = api_service["spec"]
    try:
        client.request("GET", f"/apis/{spec['group']}/{spec['version']}")
    except ApiError:
        return False
    return True
