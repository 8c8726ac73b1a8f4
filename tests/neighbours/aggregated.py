"""An aggregated API server of another project, as a process behind the Service of its manifests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neighbours import programs
from neighbours.conftest import Site
from support.endpoints import endpoint_slice, own_address
from support.server import free_port


@contextmanager
def aggregated(
    site: Site, binary: Path, service: str, namespace: str, *flags: str, kubeconfig_flag: str = "--kubeconfig"
) -> Iterator[None]:
    """Run an API server as the service account that has its service's name, with its rights only.

    Its manifests must have been applied. The service must have a port named `https`.
    """
    port = free_port()
    endpoint = endpoint_slice(service, port, own_address(), "https")
    site.kubectl("apply", f"--namespace={namespace}", "-f", "-", stdin=json.dumps(endpoint))
    kubeconfig = programs.as_service_account(site.kubectl, site.directory, namespace, service)
    argv = [
        *(f"{flag}={kubeconfig}" for flag in (kubeconfig_flag, "--authentication-kubeconfig")),
        f"--authorization-kubeconfig={kubeconfig}",
        f"--secure-port={port}",
        f"--cert-dir={site.directory / f'{service}-certs'}",
        *flags,
    ]
    with programs.program(site.directory / f"{service}.log", binary, *argv):
        yield
