"""The configuration of the aggregator."""

from __future__ import annotations

from tetrapod.aggregator.backends import ProxyCertificate
from tetrapod.aggregator.service import AggregatorConfig
from tetrapod.apps.options.options import Options
from tetrapod.apps.wiring.addresses import external_address


def proxy_certificate(options: Options, certificate: str, key: str) -> ProxyCertificate:
    """Return the client certificate towards aggregated API servers: the files that flags name, or the given ones."""
    flags = options.aggregation
    return ProxyCertificate(flags.proxy_client_cert_file or certificate, flags.proxy_client_key_file or key)


def aggregator_config(options: Options, certificate: ProxyCertificate) -> AggregatorConfig:
    """Return the configuration of the aggregator."""
    return AggregatorConfig(
        enable_aggregator_routing=options.aggregation.enable_routing,
        proxy_certificate=certificate,
        reject_forwarding_redirect=options.aggregation.reject_forwarding_redirect,
        server_address=external_address(options),
    )
