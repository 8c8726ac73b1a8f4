"""The HTTPS server of a process: filter chain, listener and exporter of traces, as the flags configure them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tetrapod.apps.options.options import Options
from tetrapod.generic.authentication.interface import RequestAuthenticator
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.egress.selector import CONTROL_PLANE, NO_EGRESS, EgressSelector
from tetrapod.generic.filters.chain import ChainConfig, build_handler_chain
from tetrapod.generic.filters.draining import Draining
from tetrapod.generic.filters.fair_scheduling import is_of_service, kind_of_user
from tetrapod.generic.filters.storage_versions import Barrier
from tetrapod.generic.flowcontrol.controller import FlowControl
from tetrapod.generic.http.request import Handler
from tetrapod.generic.http.server import HttpServer
from tetrapod.generic.http.tls import ServingTLS
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.observability.tracing.provider import Tracing
from tetrapod.generic.scheduling.config import FairScheduling
from tetrapod.generic.scheduling.scheduler import FairScheduler

if TYPE_CHECKING:
    from tetrapod.generic.audit.context import Audit


@dataclass(frozen=True, slots=True)
class FilterConfig:
    """The parts of the filter chain that do not follow from flags.

    Attributes:
        authenticator: authenticates requests.
        authorizer: authorizes requests.
        draining: rejects requests at shutdown.
        audit: the policy and backend of auditing; None if nothing is audited.
        flow_control: API priority and fairness; None if it is disabled.
        server_name: the name of the server in metrics and logs.
        service: "core", "extensions" or "auth" for a process behind the aggregator, which then writes the audit events;
            "" for the process that users connect to.
        egress: the egress selector.
        storage_versions: the updates of StorageVersions that writes wait for; None to wait for none.
    """

    authenticator: RequestAuthenticator
    authorizer: Authorizer
    draining: Draining
    audit: Audit | None
    flow_control: FlowControl | None
    server_name: str
    service: str = ""
    egress: EgressSelector = NO_EGRESS
    storage_versions: Barrier | None = None


def build_http_server(
    director: Handler, options: Options, config: FilterConfig, tls: ServingTLS, lifecycle: Lifecycle
) -> HttpServer:
    """Return the server with its filter chain. It does not listen yet.

    Args:
        director: the handler behind the filters.
        options: the options.
        config: the parts of the filter chain that do not follow from flags.
        tls: the TLS configuration.
        lifecycle: runs the exporter of traces.

    Raises:
        ValueError: the configuration of tracing is invalid, or a flag is out of range.
    """
    chain = ChainConfig(
        authenticator=config.authenticator,
        authorizer=config.authorizer,
        draining=config.draining,
        request_timeout=options.generic.request_timeout,
        min_request_timeout=float(options.generic.min_request_timeout),
        max_requests_inflight=options.share(options.generic.max_requests_inflight),
        max_mutating_requests_inflight=options.share(options.generic.max_mutating_requests_inflight),
        flow_control=config.flow_control,
        audit=config.audit,
        tracing=build_tracing(options, lifecycle, config.service, config.egress),
        behind_aggregator=bool(config.service),
        scheduler=FairScheduler(
            FairScheduling(enabled=options.tetrapod.fair_scheduling),
            is_background=is_of_service,
            group_of=kind_of_user,
        ),
        cors_allowed_origins=options.generic.cors_allowed_origins,
        goaway_chance=_goaway_chance(options),
        strict_transport_security=options.generic.strict_transport_security_directives,
        storage_versions=config.storage_versions,
        server_name=config.server_name,
    )
    server = HttpServer(
        build_handler_chain(director, chain),
        contended=chain.contended,
        host=options.serving.bind_address,
        port=options.serving.secure_port,
        share_port=options.serving.permit_port_sharing,
        source=options.worker.source if options.worker is not None else None,
        tls=tls,
        step_warning=options.tetrapod.event_loop_warning_threshold,
    )
    server.unix_socket = options.serving.unix_socket
    server.listener = options.listener
    return server


def build_tracing(
    options: Options, lifecycle: Lifecycle, service: str = "", egress: EgressSelector = NO_EGRESS
) -> Tracing | None:
    """Return the sampler of traces, and register the hooks of its exporter. Return None if no traces are exported.

    Args:
        options: the options.
        lifecycle: runs the exporter.
        service: "core", "extensions" or "auth" for a process behind the aggregator; "" for one that users connect to.
        egress: the egress selector.

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
    resource = {"service.name": name, "service.instance.id": apiserver_id()}
    exporter = Exporter(configuration.endpoint, resource, egress.lookup(CONTROL_PLANE))
    exporter.follow(lifecycle)
    return Tracing(configuration, exporter)


def _goaway_chance(options: Options) -> float:
    """Return the probability (0 to 0.02) with which a response is followed by a GOAWAY, from --goaway-chance.

    It is 0 if HTTP/2 is disabled.

    Raises:
        ValueError: --goaway-chance is out of this range, which is upstream's.
    """
    if not 0 <= options.generic.goaway_chance <= 0.02:
        raise ValueError("--goaway-chance can not be less than 0 or greater than 0.02")
    return 0.0 if options.serving.disable_http2_serving else options.generic.goaway_chance
