"""A library for aggregated API servers: declare kinds and run the server. See docs/tutorials/aggregated-server.md."""

from tetrapod.generic.aggregated.asgi_serving import CertificateProtocol, serve_asgi
from tetrapod.generic.aggregated.cluster import Cluster
from tetrapod.generic.aggregated.command import command, run
from tetrapod.generic.aggregated.computed import list_of
from tetrapod.generic.aggregated.kinds import Kind, KindStrategy, PrinterColumn
from tetrapod.generic.aggregated.server import AggregatedServer, Settings
from tetrapod.generic.aggregated.versions import Version
from tetrapod.generic.registry.rest import Rest

__all__ = [
    "AggregatedServer",
    "CertificateProtocol",
    "Cluster",
    "Kind",
    "KindStrategy",
    "PrinterColumn",
    "Rest",
    "Settings",
    "Version",
    "command",
    "list_of",
    "run",
    "serve_asgi",
]
