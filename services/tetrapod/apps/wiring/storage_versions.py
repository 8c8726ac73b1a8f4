"""The updates of StorageVersions, behind their feature gates."""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence

from tetrapod.generic.client.interface import Client
from tetrapod.generic.configuration.server_identity import identity_of
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.server.kubernetes_service.identity import SERVER
from tetrapod.generic.server.resource_config import ResourceConfig
from tetrapod.generic.server.server import GenericAPIServer
from tetrapod.generic.server.storage_versions import GATE, STORAGE_VERSIONS, StorageVersions, enabled

log = logging.getLogger(__name__)


def follow_storage_versions(
    resource_config: ResourceConfig, servers: Sequence[GenericAPIServer], client: Client, lifecycle: Lifecycle
) -> StorageVersions | None:
    """Register the post-start hook that updates StorageVersions, and return the state of the updates.

    Return None if the gate is off or StorageVersions are not served. kube-apiserver without the API never becomes
    ready; Tetrapod logs that, and does without the updates.

    Args:
        resource_config: the served resources.
        servers: the servers of this process, with all their resources.
        client: the server's own client.
        lifecycle: runs the hook.
    """
    if not enabled():
        return None
    if not resource_config.enabled(*STORAGE_VERSIONS):
        log.warning("%s has no effect: --runtime-config does not enable internal.apiserver.k8s.io/v1alpha1", GATE)
        return None
    versions = StorageVersions()
    versions.follow([server.source for server in servers], client, lifecycle, identity_of(socket.gethostname(), SERVER))
    return versions
