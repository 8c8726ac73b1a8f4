"""The server of a process by its flags: TLS, the chain of filters, and what stands below them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tetrapod.apps.options.options import Options
from tetrapod.apps.wiring.tracing import tracing_of
from tetrapod.generic.authentication.interface import RequestAuthenticator
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.filters.chain import ChainConfig, build_handler_chain
from tetrapod.generic.filters.draining import Draining
from tetrapod.generic.flowcontrol.controller import FlowControl
from tetrapod.generic.http.server import HttpServer
from tetrapod.generic.http.tls import ServingTLS
from tetrapod.generic.lifecycle.lifecycle import Lifecycle
from tetrapod.generic.request import Handler
from tetrapod.generic.scheduling.config import FairScheduling
from tetrapod.generic.scheduling.scheduler import FairScheduler

if TYPE_CHECKING:
    from tetrapod.generic.audit.audit import Audit


@dataclass(frozen=True, slots=True)
class Door:
    """What a process asks of each request. `service`: its name where it stands behind a front, which writes the events of requests."""

    authenticator: RequestAuthenticator
    authorizer: Authorizer
    draining: Draining
    audit: Audit | None
    flow_control: FlowControl | None
    server_name: str
    service: str = ""


def listener(director: Handler, options: Options, door: Door, tls: ServingTLS, lifecycle: Lifecycle) -> HttpServer:
    """Not started yet. Raises ValueError for flags of tracing that are no good."""
    chain = ChainConfig(
        authenticator=door.authenticator,
        authorizer=door.authorizer,
        draining=door.draining,
        request_timeout=options.generic.request_timeout,
        max_requests_inflight=options.generic.max_requests_inflight,
        max_mutating_requests_inflight=options.generic.max_mutating_requests_inflight,
        flow_control=door.flow_control,
        audit=door.audit,
        tracing=tracing_of(options, lifecycle, door.service),
        notify_aggregator=bool(door.service),
        scheduler=FairScheduler(FairScheduling(enabled=options.tetrapod.fair_scheduling)),
        cors_allowed_origins=options.generic.cors_allowed_origins,
        strict_transport_security=options.generic.strict_transport_security_directives,
        server_name=door.server_name,
    )
    handler = build_handler_chain(director, chain)
    return HttpServer(
        handler,
        contended=chain.contended,
        host=options.serving.bind_address,
        port=options.serving.secure_port,
        tls=tls,
        step_warning=options.tetrapod.event_loop_warning_threshold,
    )
