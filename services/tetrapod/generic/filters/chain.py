"""The filter chain: the list of filters in the order in which a request passes them.

Each filter is a small module with a function from `Handler` to `Handler`. Upstream wraps handlers from the inside
out; this list is in the order of a request, from the outside in.

A request passes the filters of the aggregator, and those of the service behind it. These run twice for a reason:

- audit-id, requestinfo: the logs, spans and routes of the service need both. The service takes the aggregator's ID.
- metrics: each process has its own. The aggregator does not count requests that it forwards.
- errors, warnings, cachecontrol: each process has errors and pages of its own, such as /metrics.
- draining: a service stops independently of the aggregator, which then sends the request to another replica.
- deadline: the aggregator may be gone, or have stopped to wait.
- authentication: identity headers count only with the certificate of the front proxy. Clients may also connect to the
  service directly, with a certificate or a token.
- impersonation, authorization: for such clients. A front proxy vouches for an identity, not for permissions.
- maxinflight: several aggregators may forward to one service.
- compression: compressed bytes are fewer to encrypt. The aggregator passes them on.

Queuing, fairness between users over time, and audit events are the aggregator's alone.
Upstream: staging/src/k8s.io/apiserver/pkg/server/config.go, DefaultBuildHandlerChain
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import tetrapod.generic.audit.metrics  # noqa: F401 - registers its metrics, which exist without auditing too
from tetrapod.generic.authentication.interface import RequestAuthenticator
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.filters.audit_id import with_audit_id
from tetrapod.generic.filters.authentication import with_authentication
from tetrapod.generic.filters.authorization import with_authorization
from tetrapod.generic.filters.cache_control import with_cache_control
from tetrapod.generic.filters.compression import with_compression
from tetrapod.generic.filters.cors import with_cors
from tetrapod.generic.filters.deadline import with_request_deadline
from tetrapod.generic.filters.draining import Draining, with_draining
from tetrapod.generic.filters.errors import with_status_errors
from tetrapod.generic.filters.fair_scheduling import with_fair_scheduling
from tetrapod.generic.filters.goaway import with_probabilistic_goaway
from tetrapod.generic.filters.hsts import with_hsts
from tetrapod.generic.filters.impersonation import with_impersonation
from tetrapod.generic.filters.instrumentation import with_instrumentation
from tetrapod.generic.filters.max_in_flight import InFlight, with_max_in_flight
from tetrapod.generic.filters.peer_audit import with_audit_findings
from tetrapod.generic.filters.priority_and_fairness import with_priority_and_fairness
from tetrapod.generic.filters.request_info import with_request_info
from tetrapod.generic.filters.storage_versions import Barrier, with_storage_version_precondition
from tetrapod.generic.filters.tracing import spanned, with_traces, with_tracing
from tetrapod.generic.filters.warnings import with_warnings
from tetrapod.generic.flowcontrol.controller import FlowControl
from tetrapod.generic.http.request import MIN_WATCH_SECONDS, Handler
from tetrapod.generic.observability.tracing.provider import Tracing
from tetrapod.generic.observability.tracing.trace_endpoint import with_permission
from tetrapod.generic.scheduling.scheduler import FairScheduler

if TYPE_CHECKING:
    from tetrapod.generic.audit.context import Audit

Filter = Callable[[Handler], Handler]


@dataclass(frozen=True, slots=True)
class ChainConfig:
    """The configuration of the filters.

    Attributes:
        authenticator: authenticates requests.
        authorizer: authorizes requests and impersonation.
        draining: counts the requests in flight and is activated at shutdown.
        request_timeout: the deadline of requests that are not long-running, in seconds.
        min_request_timeout: the minimum duration of watches without `timeoutSeconds`, in seconds.
        max_requests_inflight: the limit of read requests; 0 for none. Not used with `flow_control`.
        max_mutating_requests_inflight: the limit of mutating requests; 0 for none. Not used with `flow_control`.
        flow_control: API priority and fairness; None to use the two limits instead.
        scheduler: shares the event loop among users, if `behind_aggregator` is set.
        audit: writes audit events; None to disable auditing.
        tracing: set if traces are exported.
        behind_aggregator: whether requests arrive through the aggregator, which queues them and writes the audit
            events. Audit data is returned to it.
        cors_allowed_origins: regular expressions; empty to disable CORS.
        strict_transport_security: the directives of the header; empty to omit it.
        storage_versions: the updates of StorageVersions that writes wait for; None to wait for none.
        goaway_chance: the fraction of HTTP/2 requests whose client is asked to open another connection.
        server_name: the name in metrics and traces.
    """

    authenticator: RequestAuthenticator
    authorizer: Authorizer
    draining: Draining = field(default_factory=Draining)
    request_timeout: float = 60.0
    min_request_timeout: float = MIN_WATCH_SECONDS
    max_requests_inflight: int = 400
    max_mutating_requests_inflight: int = 200
    flow_control: FlowControl | None = None
    scheduler: FairScheduler = field(default_factory=FairScheduler)
    audit: Audit | None = None
    tracing: Tracing | None = None
    behind_aggregator: bool = False
    cors_allowed_origins: tuple[str, ...] = ()
    strict_transport_security: tuple[str, ...] = ()
    goaway_chance: float = 0.0
    storage_versions: Barrier | None = None
    server_name: str = "tetrapod"

    @property
    def contended(self) -> Callable[[], bool]:
        """A function that returns whether requests of several users compete for the event loop at this moment."""
        return (self.flow_control.scheduler if self.flow_control is not None else self.scheduler).contended


def build_handler_chain(handler: Handler, config: ChainConfig) -> Handler:
    """Return a handler that passes requests through every filter to `handler`, which routes them to the endpoints.

    Traced requests pass a second chain, with the same filters and two for tracing itself.
    """
    filters = ordered_filters(config)

    def traceable() -> Handler:
        """Return a chain with a span around each filter, for traced requests."""
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


def ordered_filters(config: ChainConfig) -> list[tuple[str, Filter]]:
    """Return the filters from the outermost to the innermost, each with its name in traces (upstream's, if it has one).

    The filters with the name "" are part of tracing itself: one permits the trace in the response, the other creates
    the server span. They have no spans of their own, and are only in the chain for traced requests.
    """
    in_flight = InFlight(config.max_requests_inflight, config.max_mutating_requests_inflight)
    return [
        # before all work
        ("fair-scheduling", lambda h: with_fair_scheduling(h, config.scheduler) if config.behind_aggregator else h),
        ("audit-id", with_audit_id),  # every response carries the audit ID
        ("requestinfo", with_request_info),  # all later filters use the request info
        ("metrics", lambda h: with_instrumentation(h, config.server_name)),  # counts rejections too
        ("cachecontrol", with_cache_control),  # a default that handlers may override
        ("hsts", lambda h: with_hsts(h, config.strict_transport_security)),
        ("goaway", lambda h: with_probabilistic_goaway(h, config.goaway_chance)),  # balances clients between replicas
        ("errors", with_status_errors),  # converts a StatusError of later filters to a response
        ("warnings", with_warnings),  # inside errors, so that rejections carry warnings too
        # before authentication: a stopping server does no more work
        ("draining", lambda h: with_draining(h, config.draining)),
        ("cors", lambda h: with_cors(h, config.cors_allowed_origins)),  # browsers send preflights without credentials
        # audits rejections before authentication completes
        ("rejection-audit", lambda h: _with_rejection_audit(h, config.audit)),
        (
            "deadline",
            lambda h: with_request_deadline(h, config.request_timeout, config.min_request_timeout),
        ),  # bounds everything below
        (
            "authentication",
            lambda h: with_authentication(h, config.authenticator, shared=config.behind_aggregator),
        ),
        ("", with_permission),  # allows traces in the response, once the user is known
        ("", lambda h: with_tracing(h, config.tracing)),  # needs the user: only some may mark a request as traced
        ("audit", lambda h: _with_audit(h, config.audit)),  # needs the user; sees every later rejection
        # for a front proxy that writes the audit events
        ("audit-findings", lambda h: with_audit_findings(h) if config.behind_aggregator else h),
        # needs the user; later filters see the impersonated user
        ("impersonation", lambda h: with_impersonation(h, config.authorizer)),
        # Before authorization, so that a flood of requests does not cost authorization as well.
        ("priorityandfairness" if config.flow_control else "maxinflight", lambda h: _with_limits(h, config, in_flight)),
        ("authorization", lambda h: with_authorization(h, config.authorizer)),
        # after all rejections for other reasons, as upstream
        ("storageversions", lambda h: with_storage_version_precondition(h, config.storage_versions)),
        ("compression", with_compression),  # next to the handler, so that it sees the whole body
    ]


def _with_rejection_audit(handler: Handler, audit: Audit | None) -> Handler:
    if audit is None:
        return handler
    # imports ten modules, so only if auditing is enabled
    from tetrapod.generic.filters.audit import with_rejection_audit

    return with_rejection_audit(handler, audit)


def _with_audit(handler: Handler, audit: Audit | None) -> Handler:
    if audit is None:
        return handler
    from tetrapod.generic.filters.audit import with_audit

    return with_audit(handler, audit)


def _with_limits(handler: Handler, config: ChainConfig, in_flight: InFlight) -> Handler:
    if config.flow_control is not None:
        return with_priority_and_fairness(handler, config.flow_control, config.request_timeout)
    return with_max_in_flight(handler, in_flight)
