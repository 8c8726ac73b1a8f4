"""The exporter of OpenTelemetry traces that the command line configures, for any of the servers."""

from __future__ import annotations

from tetrapod.apps.options.options import Options
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.observability.tracing.provider import Tracing


def build_tracing(options: Options, lifecycle: Lifecycle, service: str = "") -> Tracing | None:
    """Return the tracing configuration with its exporter, or None if no traces are exported.

    Args:
        service: the name of one of the four services, or "" for the server that clients connect to.

    Raises:
        ValueError: the configuration file is invalid; the text is upstream's.
    """
    if not options.tracing.config_file:
        return None
    from tetrapod.generic.configuration.server_identity import apiserver_id
    from tetrapod.generic.observability.tracing.configuration import read_configuration
    from tetrapod.generic.observability.tracing.exporter import Exporter

    configuration = read_configuration(options.tracing.config_file)
    name = f"apiserver-{service}" if service else "apiserver"
    exporter = Exporter(configuration.endpoint, {"service.name": name, "service.instance.id": apiserver_id()})
    exporter.follow(lifecycle)
    return Tracing(configuration, exporter)
