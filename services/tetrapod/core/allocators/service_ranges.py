"""Parsing of --service-cluster-ip-range: the networks of cluster IPs, one for each IP family of the cluster.

Upstream: cmd/kube-apiserver/app/options/{completion,validation}.go, pkg/controlplane/apiserver/options/options.go.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.allocators.networks import Network
from tetrapod.machinery.golang.ip_addresses import parse_cidr_sloppy

FLAG: Final = "--service-cluster-ip-range"
_DEFAULT: Final = "10.0.0.0/24"
_MINIMUM: Final = 8


def service_ranges(value: str) -> tuple[Network, ...]:
    """Return the networks that --service-cluster-ip-range names: the primary one, and for dual-stack the secondary one.

    Args:
        value: the value of the flag; "" for its default, 10.0.0.0/24.

    Raises:
        ValueError: the value is invalid; the text is upstream's.
    """
    texts = (value or _DEFAULT).split(",")
    if (primary := parse_cidr_sloppy(texts[0])) is None:
        raise ValueError("service-cluster-ip-range[0] is not a valid cidr")
    if primary[1].num_addresses < _MINIMUM:
        text = f"the service cluster IP range must be at least {_MINIMUM} IP addresses"
        raise ValueError(f"error determining service IP ranges for primary service cidr: {text}")
    if len(texts) == 1:
        return (primary[1],)
    if (secondary := parse_cidr_sloppy(texts[1])) is None:
        raise ValueError("service-cluster-ip-range[1] is not an ip net")
    if len(texts) > 2:
        raise ValueError(f"{FLAG} must not contain more than two entries")
    if primary[1].version == secondary[1].version:
        raise ValueError(f"{FLAG}[0] and {FLAG}[1] must be of different IP family")
    return primary[1], secondary[1]


def first_address(network: Network) -> str:
    """Return the first usable address of a network, which the service `kubernetes` has in the primary one."""
    return str(network.network_address + 1)
