"""The configuration of connections to kubelets from flags.

Upstream: KubeletClientConfig. Without a CA the certificates of kubelets are not verified.
"""

from __future__ import annotations

from tetrapod.apps.options import Options
from tetrapod.apps.wiring.files import read_file
from tetrapod.core.subresources.locations import KubeletConfig
from tetrapod.generic.proxy import ClientTLS


def kubelet_config(options: Options) -> KubeletConfig:
    """Return the configuration of connections to kubelets.

    Raises:
        click.ClickException: a file cannot be read.
    """
    for flag in ("kubelet-client-certificate", "kubelet-client-key"):
        if path := getattr(options, flag.replace("-", "_")):
            read_file(path, flag)
    authority = options.kubelet_certificate_authority
    tls = ClientTLS(
        ca_data=read_file(authority, "kubelet-certificate-authority").decode() if authority else "",
        insecure=not authority,
        certificate=options.kubelet_client_certificate,
        key=options.kubelet_client_key,
    )
    return KubeletConfig(tls, options.kubelet_preferred_address_types)
