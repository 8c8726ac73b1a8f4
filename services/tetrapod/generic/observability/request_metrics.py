"""Metrics of requests, under upstream's names and labels.

Only requests that have reached an endpoint are counted (`Request.served`), and those rejected with a 429: otherwise
clients could create labels with arbitrary paths. The series of requests with the same labels are found with one
look-up.
Upstream: k8s.io/apiserver/pkg/endpoints/metrics/metrics.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tetrapod.generic.http.request import Request
from tetrapod.generic.metrics.counters import Counter, Gauge
from tetrapod.generic.metrics.histograms import LATENCY_BUCKETS, Histogram
from tetrapod.generic.metrics.series import on_change
from tetrapod.machinery.golang.query import Query
from tetrapod.machinery.requestinfo import RequestInfo, scope_of

_OF: Final = ("group", "version", "resource", "subresource", "scope", "component")
_SLI_BUCKETS: Final = (
    0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0
)  # fmt: skip
TOTAL: Final = Counter(
    "apiserver_request_total",
    "Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, "
    "component, and HTTP response code.",
    ("verb", "dry_run", *_OF, "code"),
)
DURATION: Final = Histogram(
    "apiserver_request_duration_seconds",
    "Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, "
    "scope and component.",
    ("verb", "dry_run", *_OF),
    LATENCY_BUCKETS,
)
SLI_DURATION: Final = Histogram(
    "apiserver_request_sli_duration_seconds",
    "Response latency distribution (not counting webhook duration and priority & fairness queue wait times) in "
    "seconds for each verb, group, version, resource, subresource, scope and component.",
    ("verb", *_OF),
    _SLI_BUCKETS,
)
RESPONSE_SIZES: Final = Histogram(
    "apiserver_response_sizes",
    "Response size distribution in bytes for each group, version, verb, resource, subresource, scope and component.",
    ("verb", *_OF),
    tuple(1000 * 10.0**i for i in range(7)),
)
LONG_RUNNING: Final = Gauge(
    "apiserver_longrunning_requests",
    "Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and "
    "component. Not all requests are tracked this way.",
    ("verb", *_OF),
)
TERMINATIONS: Final = Counter(
    "apiserver_request_terminations_total",
    "Number of requests which apiserver terminated in self-defense.",
    ("verb", *_OF, "code"),
)
ABORTS: Final = Counter(
    "apiserver_request_aborts_total",
    "Number of requests which apiserver aborted possibly due to a timeout, for each group, version, verb, resource, "
    "subresource and scope",
    ("verb", "group", "version", "resource", "subresource", "scope"),
)
IN_FLIGHT: Final = Gauge(
    "apiserver_current_inflight_requests",
    "Maximal number of currently used inflight request limit of this apiserver per request kind in last second.",
    ("request_kind",),
)
IN_QUEUE: Final = Gauge(
    "apiserver_current_inqueue_requests",
    "Maximal number of queued requests in this apiserver per request kind in last second.",
    ("request_kind",),
)
SELF: Final = Counter(
    "apiserver_selfrequest_total",
    "Counter of apiserver self-requests broken out for each verb, API resource and subresource.",
    ("verb", "group", "resource", "subresource"),
)
FIELD_VALIDATION: Final = Histogram(
    "field_validation_request_duration_seconds",
    "Response latency distribution in seconds for each field validation value",
    ("field_validation",),
    _SLI_BUCKETS,
)
_KINDS: Final = {True: ("readOnly",), False: ("mutating",)}
_READS: Final = frozenset({"get", "list", "watch"})
for _gauge in (IN_FLIGHT, IN_QUEUE):
    for _kind in _KINDS.values():
        _gauge.add(_kind, 0)
_IN_FLIGHT: Final = {kind: IN_FLIGHT.row(kind) for kind in _KINDS.values()}
_VALIDATIONS: Final = frozenset({"", "Ignore", "Strict", "Warn"})
_VALID: Final = frozenset(
    {"APPLY", "CONNECT", "DELETE", "GET", "HEAD", "LIST", "PATCH", "POST", "PUT", "WATCH", "OPTIONS", "TRACE"}
)
_OTHER: Final = "other"
_CONNECTS: Final = frozenset({"log", "exec", "portforward", "attach", "proxy"})
_APPLIES: Final = "application/apply-patch+yaml"
_RESOURCE_KEY: Final = 8
"""The length of a key of `RequestMetrics` for a resource. The name of the resource is the first part, its group the
fourth.
"""
_NONE: Final = RequestInfo(False, "", "")
PAGE: Final = "page"
"""A key of `Request.state`. Handlers of pages that upstream counts like resources (`/statusz`, `/flagz`) store the
labels group, version and resource there.
"""
AGGREGATED_DISCOVERY: Final = "aggregated discovery"
"""A key of `Request.state`, which the handler of aggregated discovery sets to True. Its requests are counted."""
_PATHS: Final = {
    "/healthz": ("/healthz", ""),
    "/livez": ("/livez", ""),
    "/readyz": ("/readyz", ""),
    "/openapi/v3": ("openapi/v3", ""),
}
"""The subresource and component under which paths other than those of resources are counted. As upstream, only these
are, and those below `/openapi/v3/`, and `/api` and `/apis` in the aggregated form.
"""
_V3_DOCUMENTS: Final = ("openapi/v3/", "")
_CODES: Final = {code: str(code) for code in range(100, 600)}


def _static_path(request: Request) -> tuple[str, str] | None:
    """Return the subresource and component under which a request is counted; None if it is not counted."""
    if AGGREGATED_DISCOVERY in request.state:
        return request.path.strip("/"), "apiserver"
    if request.path.startswith("/openapi/v3/"):
        return _V3_DOCUMENTS
    return _PATHS.get(request.path)


class Series:
    """The metric series of requests with the same labels.

    Args:
        verb: the verb as in upstream's metrics, such as LIST.
        dry_run: the value of the label dry_run.
        resource_labels: group, version, resource, subresource, scope and component.
    """

    __slots__ = ("_codes", "_duration", "_labels", "_self_request_labels", "_sizes", "_sli", "dry_run", "verb")

    def __init__(self, verb: str, dry_run: str, resource_labels: tuple[str, ...]) -> None:
        self.verb, self.dry_run = verb, dry_run
        self._labels = (verb, dry_run, *resource_labels)
        self._self_request_labels = (verb, resource_labels[0], resource_labels[2], resource_labels[3])
        self._codes: dict[int, list[float]] = {}
        self._duration = DURATION.row(self._labels)
        self._sli = SLI_DURATION.row((verb, *resource_labels)) if not dry_run else None
        self._sizes = RESPONSE_SIZES.row((verb, *resource_labels)) if verb in ("GET", "LIST") else None

    def count(self, code: int, seconds: float, sli_seconds: float, size: int) -> None:
        """Count a request that has ended.

        Args:
            code: the status code.
            seconds: the duration.
            sli_seconds: the duration without webhooks and queues.
            size: the bytes of the response body; below 0 if unknown.
        """
        total = self._codes.get(code)
        if total is None:
            total = self._codes[code] = TOTAL.row((*self._labels, _CODES.get(code) or str(code)))
        total[0] += 1
        DURATION.count(self._duration, seconds)
        if self._sli is not None:
            SLI_DURATION.count(self._sli, sli_seconds)
        if self._sizes is not None and size >= 0:
            RESPONSE_SIZES.count(self._sizes, size)

    def count_self(self) -> None:
        """Count a request that one of the server's own controllers sent, in apiserver_selfrequest_total.

        Call it in addition to `count`.
        """
        SELF.add(self._self_request_labels)


class RequestMetrics:
    """The request metrics of one server.

    Args:
        component: the label of that name.
    """

    def __init__(self, component: str) -> None:
        self._component = component
        self._known: dict[tuple[str, ...], Series] = {}
        on_change(self._forget)

    def _forget(self, labels: Mapping[str, str]) -> None:
        """Forget the `Series` of one resource in all its versions; the next request looks them up again.

        It is called when a resource is removed or exists again. The exported values are not changed here: the metrics
        themselves drop them.

        Args:
            labels: has `group` and `resource` of the resource; labels of other objects match nothing.
        """
        resource_labels = labels.get("resource"), labels.get("group")
        for key in [key for key in self._known if len(key) == _RESOURCE_KEY and (key[0], key[3]) == resource_labels]:
            del self._known[key]

    def series(self, request: Request) -> Series | None:
        """Return the series of a request, or None if it must not be counted.

        It is None for requests that were rejected before they reached an endpoint, and for paths that upstream does not
        count.
        """
        if not request.served:
            return None
        info = request.info or _NONE
        dry_run = dry_run_of(request.query()) if "dryRun" in request.query_string else ""
        if not info.is_resource_request:
            if (page := request.state.get(PAGE)) is not None:
                key = (*page, _method(request), dry_run)
                return self._known.get(key) or self._known.setdefault(
                    key, Series(verb_of(request), dry_run, (*page, "", "", self._component))
                )
            static_path = _static_path(request)
            if static_path is None:
                return None
            path = ("", _method(request), static_path[0], dry_run)
            return self._known.get(path) or self._remember(path, "", static_path[1], request, dry_run)
        verb = info.verb
        if request.method == "PATCH" and request.header(b"content-type").startswith(_APPLIES):
            verb = "apply"
        key = (
            info.resource,
            _method(request),
            verb,
            info.api_group,
            info.api_version,
            info.subresource,
            scope_of(info),
            dry_run,
        )
        return self._known.get(key) or self._remember(key, scope_of(info), self._component, request, dry_run)

    def _remember(self, key: tuple[str, ...], scope: str, component: str, request: Request, dry_run: str) -> Series:
        info = request.info or _NONE
        if info.is_resource_request:
            resource_labels = (info.api_group, info.api_version, info.resource, info.subresource, scope, component)
        else:
            resource_labels = ("", "", "", key[2], scope, component)
        series = self._known[key] = Series(verb_of(request), dry_run, resource_labels)
        return series

    def labels(self, request: Request) -> tuple[str, ...]:
        """Return the verb, group, version, resource, subresource, scope and component of a request, in this order."""
        info = request.info or _NONE
        resource_labels = (
            info.api_group,
            info.api_version,
            info.resource,
            info.subresource,
            scope_of(info),
            self._component,
        )
        return (verb_of(request), *resource_labels)

    def dropped(self, request: Request) -> None:
        """Count a request that was rejected with a 429.

        It is counted without the labels of its resource, so that clients cannot add series.
        """
        info = request.info or _NONE
        labels = (verb_of(request), "", "", "", "", scope_of(info), self._component, "429")
        TOTAL.add((labels[0], dry_run_of(request.query()), *labels[1:]))
        TERMINATIONS.add(labels)


def in_flight(request: Request) -> list[float]:
    """Return the list whose only element is the number of in-flight requests of the request's kind.

    The kind is read-only or mutating. The caller changes the element when a request starts and when it ends.
    """
    return _IN_FLIGHT[kind_of(request)]


def kind_of(request: Request) -> tuple[str]:
    """Return the label of a request in the gauges of in-flight and queued requests: readOnly or mutating."""
    return _KINDS[request.info is not None and request.info.verb in _READS]


def _method(request: Request) -> str:
    """Return the HTTP method as a label.

    Methods that upstream does not know become `other`, so that clients cannot add series.
    """
    return request.method if request.method in _VALID else _OTHER


def verb_of(request: Request) -> str:
    """Return the verb label, such as LIST, WATCH or APPLY (upstream: CanonicalVerb, CleanVerb)."""
    info, verb = request.info or _NONE, request.method
    if info.is_resource_request and info.subresource in _CONNECTS:
        return "CONNECT"
    if verb in ("GET", "HEAD"):
        if info.verb == "watch":
            return "WATCH"
        return "LIST" if scope_of(info) not in ("resource", "") else "GET"
    if verb == "PATCH" and request.header(b"content-type").startswith(_APPLIES):
        return "APPLY"
    return _method(request)


def field_validation_of(query: Query) -> str:
    """Return the value of `?fieldValidation` as a label, or `invalid` (upstream: cleanFieldValidation)."""
    values = query.lists.get("fieldValidation", [""])
    return values[0] if len(values) == 1 and values[0] in _VALIDATIONS else "invalid"


def dry_run_of(query: Query) -> str:
    """Return the values of `?dryRun` as a label: "" without any, `All`, or `invalid`."""
    values = query.lists.get("dryRun", [])
    return ",".join(sorted(set(values))) if all(value == "All" for value in values) else "invalid"
