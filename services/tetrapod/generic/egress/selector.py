"""`EgressSelector`: the dialer for each type of traffic, and its construction from a configuration file.

Upstream: k8s.io/apiserver/pkg/server/egressselector/egress_selector.go
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tetrapod.generic.dialing import Dialer
from tetrapod.generic.egress.configuration import DIRECT, GRPC, read_configuration, validation_errors
from tetrapod.generic.egress.grpc import grpc_dialer
from tetrapod.generic.egress.http_connect import tcp_dialer, unix_dialer
from tetrapod.generic.proxy.tls import ClientTLS, client_context
from tetrapod.machinery.field import aggregate
from tetrapod.machinery.gvk import Object

CONTROL_PLANE: Final = "controlplane"
"""Traffic to the control plane: the webhooks of the server itself, webhooks by URL, and the collector of traces."""
ETCD: Final = "etcd"
"""Traffic to etcd."""
CLUSTER: Final = "cluster"
"""Traffic to the managed cluster: kubelets, pods, services, aggregated API servers, and webhooks by Service."""


@dataclass(frozen=True, slots=True)
class EgressSelector:
    """The dialers by type of traffic.

    Attributes:
        dialers: the dialer of each configured type ("cluster", "controlplane" or "etcd"), None for Direct. None as a
            whole if nothing is configured.
    """

    dialers: Mapping[str, Dialer | None] | None = None

    def lookup(self, name: str) -> Dialer | None:
        """Return the dialer for a type of traffic ("cluster", "controlplane" or "etcd"), or None to connect directly.

        A type that is not configured is connected directly.
        """
        return self.dialers.get(name) if self.dialers is not None else None


NO_EGRESS: Final = EgressSelector()


def read_egress_selector(path: str) -> EgressSelector:
    """Return the egress selector that a file configures.

    Raises:
        ValueError: the file is missing or invalid; the text is upstream's.
    """
    if not Path(path).exists():
        raise ValueError(f"egress-selector-config-file {path} does not exist")
    try:
        config = read_configuration(path)
    except ValueError as error:
        raise ValueError(f"failed to read egress selector config: {error}") from None
    if errors := validation_errors(config):
        raise ValueError(f"failed to validate egress selector configuration: {aggregate(errors)}")
    if config.get("egressSelections") is None:
        return NO_EGRESS
    dialers: dict[str, Dialer | None] = {}
    for selection in config["egressSelections"]:
        name = selection["name"].lower()
        try:
            dialers[name] = _dialer(selection["connection"])
        except ValueError as error:
            raise ValueError(
                f'failed to setup egress selector: failed to create dialer for egressSelection "{name}": {error}'
            ) from None
    return EgressSelector(dialers)


def _dialer(connection: Object) -> Dialer | None:
    """Return the dialer of a valid connection; None for Direct.

    Raises:
        ValueError: a file for TLS cannot be used.
    """
    protocol = connection["proxyProtocol"]
    if protocol == DIRECT:
        return None
    transport: Object = connection["transport"]
    if protocol == GRPC:
        return grpc_dialer(transport["uds"]["udsName"])
    if (uds := transport.get("uds")) is not None:
        return unix_dialer(uds["udsName"])
    tcp: Object = transport["tcp"]
    return tcp_dialer(tcp["url"], _client_tls(tcp.get("tlsConfig")))


def _client_tls(config: Object | None) -> ClientTLS | None:
    if config is None:
        return None
    certificate, key, bundle = config["clientCert"], config["clientKey"], config.get("caBundle") or ""
    try:
        client_context(ClientTLS(certificate=certificate, key=key))
    except (OSError, ValueError) as error:
        raise ValueError(f"failed to read key pair {certificate} & {key}, got {error}") from None
    try:
        authorities = Path(bundle).read_text("utf-8") if bundle else ""
    except (OSError, ValueError) as error:
        raise ValueError(f"failed to read cert file {bundle}, got {error}") from None
    tls = ClientTLS(authorities, certificate=certificate, key=key, server_name=config.get("tlsServerName") or "")
    try:
        client_context(tls)
    except (OSError, ValueError):
        raise ValueError("failed to append CA cert to the cert pool") from None
    return tls
