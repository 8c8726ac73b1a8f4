"""The flags that upstream calls generic, and those of features, traces and logs.

Upstream: staging/src/k8s.io/apiserver/pkg/server/options/server_run_options.go, feature.go, tracing.go.
"""

from __future__ import annotations

from dataclasses import dataclass

from tetrapod.apps.options.flag import AGGREGATOR, AUTH, Kind, flag


@dataclass(frozen=True, slots=True)
class GenericFlags:
    """The generic flags: limits of requests, headers of responses, shutdown."""

    request_timeout: float = flag(
        "request-timeout",
        60.0,
        "The duration a handler may keep a request open before timing it out. Long-running requests are exempt.",
    )
    min_request_timeout: int = flag(
        "min-request-timeout",
        1800,
        "The minimum number of seconds a watch without timeoutSeconds is kept open. A randomized value between this "
        "number and its double is picked as the timeout, to spread out load.",
    )
    livez_grace_period: float = flag(
        "livez-grace-period",
        0.0,
        "The maximum amount of time it should take to complete the startup sequence. Until it has elapsed since the "
        "start, /livez assumes that unfinished post-start hooks will complete successfully.",
    )
    max_requests_inflight: int = flag(
        "max-requests-inflight",
        400,
        "This and --max-mutating-requests-inflight are summed to determine the server's total concurrency limit if "
        "--enable-priority-and-fairness is true. Otherwise, this flag limits the maximum number of non-mutating "
        "requests in flight, or a zero value disables the limit completely.",
    )
    max_mutating_requests_inflight: int = flag(
        "max-mutating-requests-inflight",
        200,
        "This and --max-requests-inflight are summed to determine the server's total concurrency limit if "
        "--enable-priority-and-fairness is true. Otherwise, this flag limits the maximum number of mutating requests "
        "in flight, or a zero value disables the limit completely.",
    )
    enable_priority_and_fairness: bool = flag(
        "enable-priority-and-fairness",
        True,
        "If true, replace the max-in-flight handler with an enhanced one that queues and dispatches with priority and "
        "fairness.",
        programs=AGGREGATOR,
    )
    cors_allowed_origins: tuple[str, ...] = flag(
        "cors-allowed-origins",
        (),
        "List of allowed origins for CORS, comma separated. An allowed origin is a regular expression, which must pin "
        "to the start and end of the host: '//HOST(:|$)'. If this list is empty, CORS is not enabled.",
    )
    strict_transport_security_directives: tuple[str, ...] = flag(
        "strict-transport-security-directives",
        (),
        "List of directives for HSTS, comma separated. If this list is empty, HSTS directives are not added.",
    )
    goaway_chance: float = flag(
        "goaway-chance",
        0.0,
        "To prevent HTTP/2 clients from getting stuck on a single apiserver, randomly close a connection (GOAWAY). The "
        "client's other in-flight requests won't be affected, and the client will reconnect, likely landing on a "
        "different apiserver after going through the load balancer again. This argument sets the fraction of requests "
        "that will be sent a GOAWAY. Clusters with single apiservers, or which don't use a load balancer, should NOT "
        "enable this. Min is 0 (off), Max is .02 (1/50 requests); .001 (1/1000) is a recommended starting point.",
        kind=Kind.NUMBER,
    )
    shutdown_delay_duration: float = flag(
        "shutdown-delay-duration",
        0.0,
        "Time to delay the termination. During that time the server keeps serving requests normally. The endpoints "
        "/healthz and /livez return success, but /readyz immediately returns failure.",
    )
    shutdown_send_retry_after: bool = flag(
        "shutdown-send-retry-after",
        False,
        "If true, the server continues listening until all requests in flight that are not long-running have been "
        "drained. During this window all incoming requests are rejected with a status code 429 and a 'Retry-After' "
        "response header.",
    )
    shutdown_watch_termination_grace_period: float = flag(
        "shutdown-watch-termination-grace-period",
        0.0,
        "The maximum amount of time the server takes to end active watches during its shutdown, so that their clients "
        "do not all reconnect at once. If 0, watches end together.",
    )
    external_hostname: str = flag(
        "external-hostname",
        "",
        "The hostname, or host:port, to use when generating externalized URLs for this server (e.g. OpenID Discovery).",
        programs=AUTH,
    )
    emulated_version: tuple[str, ...] = flag(
        "emulated-version",
        (),
        "The release whose APIs and feature gates the server has, such as 1.36 or kube=1.36, from 1.34 to 1.37. The "
        "default is the release of the server.",
        kind=Kind.LIST,
    )
    min_compatibility_version: tuple[str, ...] = flag(
        "min-compatibility-version",
        (),
        "The oldest release of the control plane components that the server coexists with, such as 1.36 or kube=1.36, "
        "from 1.34 to the emulated release. The default is the release before the emulated one.",
        kind=Kind.LIST,
    )
    emulation_forward_compatible: bool = flag(
        "emulation-forward-compatible",
        False,
        "If true, a version of a resource that was introduced after the emulated release is served if an older version "
        "of the resource, which is not alpha, is served. Requires --emulated-version.",
    )
    runtime_config_emulation_forward_compatible: bool = flag(
        "runtime-config-emulation-forward-compatible",
        False,
        "If true, --runtime-config may name versions and resources that were introduced after the emulated release. "
        "Requires --emulated-version.",
    )
    feature_gates: tuple[str, ...] = flag(
        "feature-gates",
        (),
        "Comma-separated list of component:key=value pairs that describe feature gates for alpha/experimental "
        "features. The only component is kube, which is also the default.",
        kind=Kind.SETTINGS,
    )


@dataclass(frozen=True, slots=True)
class FeatureFlags:
    """The flags of optional features."""

    profiling: bool = flag(
        "profiling", True, "Enable profiling via web interface host:port/debug/pprof/, and /debug/flags/v."
    )


@dataclass(frozen=True, slots=True)
class TracingFlags:
    """The flags of OpenTelemetry traces."""

    config_file: str = flag("tracing-config-file", "", "File with apiserver tracing configuration.")


@dataclass(frozen=True, slots=True)
class EgressFlags:
    """The flags of connections by way of a proxy."""

    config_file: str = flag("egress-selector-config-file", "", "File with apiserver egress selector configuration.")


@dataclass(frozen=True, slots=True)
class MetricsFlags:
    """The flags of metrics. Upstream: staging/src/k8s.io/component-base/metrics/options.go."""

    disabled: tuple[str, ...] = flag(
        "disabled-metrics",
        (),
        "This flag provides an escape hatch for misbehaving metrics. You must provide the fully qualified metric name "
        "in order to disable it.",
    )
    show_hidden_for_version: str = flag(
        "show-hidden-metrics-for-version",
        "",
        "The previous version for which you want to show hidden metrics, as MAJOR.MINOR. Only the previous minor "
        "version is meaningful, other values are not allowed.",
    )
    allow_labels: tuple[str, ...] = flag(
        "allow-metric-labels",
        (),
        "The allowed values of a label of a metric, in the form METRIC,LABEL=VALUE,VALUE. Other values are counted as "
        'unexpected. With several metrics, each is quoted: \'"METRIC,LABEL=VALUE","METRIC,LABEL=VALUE"\'.',
        kind=Kind.REPEATED,
    )
    allow_labels_manifest: str = flag(
        "allow-metric-labels-manifest",
        "",
        'The path to a YAML file with a map of "METRIC,LABEL" to "VALUE,VALUE", in place of --allow-metric-labels.',
    )


@dataclass(frozen=True, slots=True)
class LoggingFlags:
    """The flags of the server's log."""

    format: str = flag("logging-format", "text", "Sets the log format.", choices=("text", "json"))
