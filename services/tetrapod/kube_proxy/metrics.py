"""The metrics of the proxy.

Upstream: pkg/proxy/metrics/metrics.go
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.metrics.counters import Counter, Gauge
from tetrapod.generic.metrics.histograms import Histogram

_FAMILY: Final = ("ip_family",)
_SYNC_BUCKETS: Final = tuple(0.001 * 2**exponent for exponent in range(15))
_NETWORK_BUCKETS: Final = (
    0.25, 0.5, *map(float, range(1, 60)), *map(float, range(60, 120, 5)), *map(float, range(120, 301, 30)),
)  # fmt: skip

SYNC_SECONDS: Final = Histogram(
    "kubeproxy_sync_proxy_rules_duration_seconds", "SyncProxyRules latency in seconds", _FAMILY, _SYNC_BUCKETS
)
FULL_SYNC_SECONDS: Final = Histogram(
    "kubeproxy_sync_full_proxy_rules_duration_seconds",
    "SyncProxyRules latency in seconds for full resyncs",
    _FAMILY,
    _SYNC_BUCKETS,
)
PARTIAL_SYNC_SECONDS: Final = Histogram(
    "kubeproxy_sync_partial_proxy_rules_duration_seconds",
    "SyncProxyRules latency in seconds for partial resyncs",
    _FAMILY,
    _SYNC_BUCKETS,
)
NETWORK_PROGRAMMING_SECONDS: Final = Histogram(
    "kubeproxy_network_programming_duration_seconds",
    "In Cluster Network Programming Latency in seconds",
    _FAMILY,
    _NETWORK_BUCKETS,
)
CONNTRACK_SECONDS: Final = Histogram(
    "kubeproxy_conntrack_reconciler_sync_duration_seconds",
    "ReconcileConntrackFlowsLatency latency in seconds",
    _FAMILY,
    _SYNC_BUCKETS,
)
CONNTRACK_DELETED: Final = Counter(
    "kubeproxy_conntrack_reconciler_deleted_entries_total",
    "Cumulative conntrack flows deleted by conntrack reconciler",
    _FAMILY,
)
LAST_SYNC: Final = Gauge(
    "kubeproxy_sync_proxy_rules_last_timestamp_seconds", "The last time proxy rules were successfully synced", _FAMILY
)
LAST_QUEUED: Final = Gauge(
    "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds",
    "The last time a sync of proxy rules was queued",
    _FAMILY,
)
ENDPOINT_CHANGES_PENDING: Final = Gauge(
    "kubeproxy_sync_proxy_rules_endpoint_changes_pending", "Pending proxy rules Endpoint changes"
)
ENDPOINT_CHANGES: Final = Counter(
    "kubeproxy_sync_proxy_rules_endpoint_changes_total", "Cumulative proxy rules Endpoint changes"
)
SERVICE_CHANGES_PENDING: Final = Gauge(
    "kubeproxy_sync_proxy_rules_service_changes_pending", "Pending proxy rules Service changes"
)
SERVICE_CHANGES: Final = Counter(
    "kubeproxy_sync_proxy_rules_service_changes_total", "Cumulative proxy rules Service changes"
)
RESTORE_FAILURES: Final = Counter(
    "kubeproxy_sync_proxy_rules_iptables_restore_failures_total", "Cumulative proxy iptables restore failures", _FAMILY
)
PARTIAL_RESTORE_FAILURES: Final = Counter(
    "kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total",
    "Cumulative proxy iptables partial restore failures",
    _FAMILY,
)
RULES: Final = Gauge(
    "kubeproxy_sync_proxy_rules_iptables_total",
    "Total number of iptables rules owned by kube-proxy",
    ("table", "ip_family"),
)
RULES_WRITTEN: Final = Gauge(
    "kubeproxy_sync_proxy_rules_iptables_last",
    "Number of iptables rules written by kube-proxy in last sync",
    ("table", "ip_family"),
)
WITHOUT_LOCAL_ENDPOINTS: Final = Gauge(
    "kubeproxy_sync_proxy_rules_no_local_endpoints_total",
    "Number of services with a Local traffic policy and no endpoints",
    ("traffic_policy", "ip_family"),
)
HEALTHZ: Final = Counter("kubeproxy_proxy_healthz_total", "Cumulative proxy healthz HTTP status", ("code",))
LIVEZ: Final = Counter("kubeproxy_proxy_livez_total", "Cumulative proxy livez HTTP status", ("code",))
