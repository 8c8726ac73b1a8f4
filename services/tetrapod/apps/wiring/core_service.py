"""The configuration of the core service, of its connections to kubelets, and of the admission of built-in kinds."""

from __future__ import annotations

from collections.abc import Callable

import click

from tetrapod.apps.options.kubernetes import AdmissionFlags, KubeletFlags
from tetrapod.apps.options.options import Options
from tetrapod.apps.wiring.addresses import peer_address
from tetrapod.apps.wiring.admission import build_admission
from tetrapod.apps.wiring.files import read_file
from tetrapod.apps.wiring.leader_election import coordination_timing
from tetrapod.apps.wiring.signing import signing_keys
from tetrapod.core.admission.plugins import plugin_flag_errors, plugins
from tetrapod.core.coordination.leases import GATE
from tetrapod.core.service import CoreConfig
from tetrapod.core.subresources.locations import KubeletConfig
from tetrapod.generic.admission.chain import Chain
from tetrapod.generic.admission.plugin_dependencies import PluginDependencies
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.egress.selector import CLUSTER, NO_EGRESS, EgressSelector
from tetrapod.generic.proxy import ClientTLS


def core_config(
    options: Options,
    *,
    address: str,
    ca: str,
    authentication: Callable[[], dict[str, str]],
    process_name: str = "",
    egress: EgressSelector = NO_EGRESS,
) -> CoreConfig:
    """Return the configuration of the core service.

    Args:
        options: the options.
        address: the address at which other hosts reach this server.
        ca: the CA of serving certificates, as PEM.
        authentication: returns the data of the ConfigMap `extension-apiserver-authentication`.
        process_name: the name of this process if core is a process of its own, else "".
        egress: the egress selector.

    Raises:
        click.ClickException: a file for kubelets or a signer cannot be read, or flags are inconsistent.
    """
    timing = coordination_timing(options.coordination)
    return CoreConfig(
        service_cluster_ip_range=options.workloads.service_cluster_ip_range,
        node_ports=options.workloads.service_node_port_range,
        kubernetes_node_port=options.workloads.kubernetes_service_node_port,
        advertise_address=address,
        port=options.serving.secure_port,
        ca=ca,
        authentication=authentication,
        controllers=options.tetrapod.controllers,
        kubelet=kubelet_config(options.kubelet),
        collection_delay=options.tetrapod.collection_delay,
        process_name=process_name,
        renews_identity=options.first_worker,
        peer_address=peer_address(options),
        event_ttl=options.workloads.event_ttl,
        allow_privileged=options.workloads.allow_privileged,
        signing=signing_keys(options.signing),
        max_connection_bytes_per_second=options.workloads.max_connection_bytes_per_sec,
        dialer=egress.lookup(CLUSTER),
        coordination=timing if feature_gates.enabled(GATE) else None,
    )


def kubelet_config(flags: KubeletFlags) -> KubeletConfig:
    """Return the configuration of connections to kubelets. Without a CA their certificates are not verified.

    Upstream: pkg/kubelet/client/kubelet_client.go, KubeletClientConfig.

    Raises:
        click.ClickException: a file cannot be read.
    """
    for path, name in (
        (flags.client_certificate, "kubelet-client-certificate"),
        (flags.client_key, "kubelet-client-key"),
    ):
        if path:
            read_file(path, name)
    authority = flags.certificate_authority
    tls = ClientTLS(
        ca_data=read_file(authority, "kubelet-certificate-authority").decode() if authority else "",
        insecure=not authority,
        certificate=flags.client_certificate,
        key=flags.client_key,
    )
    return KubeletConfig(tls, flags.preferred_address_types)


def build_core_admission(flags: AdmissionFlags, dependencies: PluginDependencies) -> Chain:
    """Return the admission chain of core, or of all services in one process. It has the plugins of built-in kinds.

    Raises:
        click.ClickException: --enable-admission-plugins or --disable-admission-plugins contain an unknown plugin, or a
            plugin's configuration is invalid.
    """
    if errors := plugin_flag_errors(flags.enable_plugins, flags.disable_plugins):
        raise click.ClickException("; ".join(errors))
    return build_admission(flags, dependencies, plugins)
