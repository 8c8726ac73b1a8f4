"""Services whose endpoint is a process of this machine."""

from __future__ import annotations

import socket
from typing import Any

import pytest


def own_address() -> str:
    """Return an address of this machine that is not loopback, since Endpoints may not contain loopback addresses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # connecting a UDP socket sends nothing
        except OSError:
            pytest.skip("not applicable: this machine has no address but loopback")
        return str(probe.getsockname()[0])


def endpoint_slice(service: str, port: int, address: str, port_name: str = "") -> dict[str, Any]:
    """Return an EndpointSlice of a service with one ready endpoint."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": f"{service}-1", "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "ports": [{"name": port_name, "port": port, "protocol": "TCP"}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
    }
