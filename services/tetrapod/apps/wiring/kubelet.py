"""Connections to kubelets, as the flags configure them. Without a CA the certificates of kubelets are not verified.

Upstream: pkg/kubelet/client/kubelet_client.go, KubeletClientConfig.
"""

from __future__ import annotations

from tetrapod.apps.options.kubernetes import KubeletFlags
from tetrapod.apps.wiring.files import read_file
from tetrapod.core.subresources.locations import KubeletConfig
from tetrapod.generic.proxy import ClientTLS


def kubelet_config(flags: KubeletFlags) -> KubeletConfig:
    """Return the configuration of connections to kubelets.

    Raises:
        click.ClickException: a file cannot be read.
    """
    for path, name in ((flags.client_certificate, "kubelet-client-certificate"), (flags.client_key, "kubelet-client-key")):
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
