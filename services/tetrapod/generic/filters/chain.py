"""The filters that a request meets, in order: this list is the order (upstream: DefaultBuildHandlerChain in server/config.go).

Each filter is a small file beside this one, a function from `Handler` to `Handler`. Upstream wraps from the inside out;
here the list reads from the outside in, as a request does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import tetrapod.generic.audit.metrics  # noqa: F401 - which are there whether or not anything is audited
from tetrapod.generic.authentication.interface import RequestAuthenticator
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.filters.audit_findings import with_audit_findings
from tetrapod.generic.filters.audit_id import with_audit_id
from tetrapod.generic.filters.authentication import with_authentication
from tetrapod.generic.filters.authorization import with_authorization
from tetrapod.generic.filters.cache_control import with_cache_control
from tetrapod.generic.filters.compression import with_compression
from tetrapod.generic.filters.cors import with_cors
from tetrapod.generic.filters.deadline import with_request_deadline
from tetrapod.generic.filters.draining import Draining, with_draining
from tetrapod.generic.filters.errors import with_status_errors
from tetrapod.generic.filters.hsts import with_hsts
from tetrapod.generic.filters.impersonation import with_impersonation
from tetrapod.generic.filters.instrumentation import with_instrumentation
from tetrapod.generic.filters.max_in_flight import InFlight, with_max_in_flight
from tetrapod.generic.filters.priority_and_fairness import with_priority_and_fairness
from tetrapod.generic.filters.request_info import with_request_info
from tetrapod.generic.filters.tracing import spanned, with_traces, with_tracing
from tetrapod.generic.filters.turns import with_turns
from tetrapod.generic.filters.warnings import with_warnings
from tetrapod.generic.flowcontrol.controller import FlowControl
from tetrapod.generic.flowcontrol.turns import Turns
from tetrapod.generic.request import Handler
from tetrapod.generic.tracing.asked import with_permission
from tetrapod.generic.tracing.provider import Tracing

if TYPE_CHECKING:
    from tetrapod.generic.audit.audit import Audit

Filter = Callable[[Handler], Handler]


@dataclass(frozen=True, slots=True)
class ChainConfig:
    """What the filters need; the flags that fill it carry upstream's names."""

    authenticator: RequestAuthenticator
    authorizer: Authorizer
    draining: Draining = field(default_factory=Draining)
    request_timeout: float = 60.0
    max_requests_inflight: int = 400
    max_mutating_requests_inflight: int = 200
    flow_control: FlowControl | None = None  # instead of the two numbers: priority and fairness
    turns: Turns = field(default_factory=Turns)  # of users behind a front
    audit: Audit | None = None
    tracing: Tracing | None = None  # where traces are exported
    tells_front: bool = False  # behind a front that writes the events of requests: tell it what is found out here
    cors_allowed_origins: tuple[str, ...] = ()
    strict_transport_security: tuple[str, ...] = ()
    server_name: str = "tetrapod"

    def crowded(self) -> bool:
        """Whether requests wait for their turns."""
        return (self.flow_control.turns if self.flow_control is not None else self.turns).crowded()


def build_handler_chain(handler: Handler, config: ChainConfig) -> Handler:
    """Wrap `handler` (the director) in every filter."""
    filters = _filters(config)

    def traceable() -> Handler:
        """The same chain with a span around each filter, for requests that are traced."""
        inner = handler
        for name, wrap in reversed(filters):
            wrapped = wrap(inner)
            inner = inner if wrapped is inner else spanned(name, wrapped) if name else wrapped
        return inner

    plain = handler
    for name, wrap in reversed(filters):
        if name:
            plain = wrap(plain)
    return with_traces(plain, traceable, config.tracing, config.server_name)


def _filters(config: ChainConfig) -> list[tuple[str, Filter]]:
    """Each with its name in traces, upstream's where it has one; those without a name are there for traced requests only."""
    in_flight = InFlight(config.max_requests_inflight, config.max_mutating_requests_inflight)
    return [
        ("turns", lambda h: with_turns(h, config.turns) if config.tells_front else h),  # before anything is done for a request
        ("audit-id", with_audit_id),  # whatever happens to a request, its answer names it
        ("requestinfo", with_request_info),  # everything below asks what the request is about
        ("metrics", lambda h: with_instrumentation(h, config.server_name)),  # counts refusals too, so it stands outside what refuses
        ("cachecontrol", with_cache_control),  # the default that a handler may override
        ("hsts", lambda h: with_hsts(h, config.strict_transport_security)),
        ("errors", with_status_errors),  # a StatusError raised below becomes an answer here
        ("warnings", with_warnings),  # a refusal carries its warnings too; inside errors so that both add headers
        ("draining", lambda h: with_draining(h, config.draining)),  # before authentication: a server that stops does no more work
        ("cors", lambda h: with_cors(h, config.cors_allowed_origins)),  # browsers send preflights without credentials
        ("refused-audit", lambda h: _with_refused_audit(h, config.audit)),  # what is refused below before the user is known
        ("deadline", lambda h: with_request_deadline(h, config.request_timeout)),  # bounds everything below, authentication included
        ("authentication", lambda h: with_authentication(h, config.authenticator)),
        ("", with_permission),  # to see the trace: as soon as it is known who asks
        ("", lambda h: with_tracing(h, config.tracing)),  # needs who is asking: not everybody may say that a request is traced
        ("audit", lambda h: _with_audit(h, config.audit)),  # needs who is asking; sees every refusal that follows
        ("audit-findings", lambda h: with_audit_findings(h) if config.tells_front else h),  # for a front that writes the events itself
        ("impersonation", lambda h: with_impersonation(h, config.authorizer)),  # needs who is asking; all below see who is acted for
        # Before authorization: who floods the server is not to cost it that either.
        ("priorityandfairness" if config.flow_control else "maxinflight", lambda h: _with_limits(h, config, in_flight)),
        ("authorization", lambda h: with_authorization(h, config.authorizer)),
        ("compression", with_compression),  # nearest to the handler: it sees the whole body
    ]


def _with_refused_audit(handler: Handler, audit: Audit | None) -> Handler:
    if audit is None:
        return handler
    from tetrapod.generic.filters.audit import with_refused_audit  # ten modules, for those who audit

    return with_refused_audit(handler, audit)


def _with_audit(handler: Handler, audit: Audit | None) -> Handler:
    if audit is None:
        return handler
    from tetrapod.generic.filters.audit import with_audit

    return with_audit(handler, audit)


def _with_limits(handler: Handler, config: ChainConfig, in_flight: InFlight) -> Handler:
    if config.flow_control is not None:
        return with_priority_and_fairness(handler, config.flow_control, config.request_timeout)
    return with_max_in_flight(handler, in_flight)
