"""The updates of StorageVersions, behind their feature gates."""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence

from tetrapod.generic.client.interface import Client
from tetrapod.generic.configuration.server_identity import identity_of
from tetrapod.generic.server.kubernetes_service.identity import SERVER
from tetrapod.generic.server.resource_config import ResourceConfig
from tetrapod.generic.server.server import GenericAPIServer
from tetrapod.generic.server.storage_versions import GATE, STORAGE_VERSIONS, StorageVersions, enabled

log = logging.getLogger(__name__)


def storage_versions(
    resource_config: ResourceConfig,
    servers: Sequence[GenericAPIServer],
    client: Client,
    process_name: str = SERVER,
) -> StorageVersions | None:
    """Return the StorageVersions of a process, which are not updated yet.

    Return None if the gate is off or StorageVersions are not served. kube-apiserver without the API never becomes
    ready; Tetrapod logs that, and does without the updates.

    Args:
        resource_config: the served resources.
        servers: the servers of this process, with all their resources.
        client: the server's own client.
        process_name: the name of the process from which its identity follows.
    """
    if not enabled():
        return None
    if not resource_config.enabled(*STORAGE_VERSIONS):
        log.warning("%s has no effect: --runtime-config does not enable internal.apiserver.k8s.io/v1alpha1", GATE)
        return None
    identity = identity_of(socket.gethostname(), process_name)
    return StorageVersions([server.source for server in servers], client, identity)
