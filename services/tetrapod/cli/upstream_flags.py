"""kube-apiserver's flags that have no meaning here (yet): accepted, so that a command line written for it works, and named once.

True: the flag takes a value; False: a switch (a value may follow after `=`).
"""

from __future__ import annotations

from typing import Final

ACCEPTED: Final[dict[str, bool]] = dict.fromkeys(
    """
    admission-control admission-control-config-file advertise-address aggregator-reject-forwarding-redirect allow-metric-labels
    allow-metric-labels-manifest apiserver-count audit-log-batch-buffer-size audit-log-batch-max-size audit-log-batch-max-wait
    audit-log-batch-throttle-burst audit-log-batch-throttle-enable audit-log-batch-throttle-qps audit-log-compress audit-log-format
    audit-log-maxage audit-log-maxbackup audit-log-maxsize audit-log-mode audit-log-path audit-log-truncate-enabled
    audit-log-truncate-max-batch-size audit-log-truncate-max-event-size audit-log-version audit-policy-file
    audit-webhook-batch-buffer-size audit-webhook-batch-max-size audit-webhook-batch-max-wait audit-webhook-batch-throttle-burst
    audit-webhook-batch-throttle-enable audit-webhook-batch-throttle-qps audit-webhook-config-file audit-webhook-initial-backoff
    audit-webhook-mode audit-webhook-truncate-enabled audit-webhook-truncate-max-batch-size audit-webhook-truncate-max-event-size
    audit-webhook-version authentication-config authentication-token-webhook-cache-ttl authentication-token-webhook-config-file
    authentication-token-webhook-version authorization-config authorization-policy-file authorization-webhook-cache-authorized-ttl
    authorization-webhook-cache-unauthorized-ttl authorization-webhook-config-file authorization-webhook-version cert-dir
    cloud-config cloud-provider coordinated-leadership-lease-duration coordinated-leadership-renew-deadline
    coordinated-leadership-retry-period debug-socket-path default-not-ready-toleration-seconds
    default-unreachable-toleration-seconds default-watch-cache-size delete-collection-workers disable-http2-serving
    disabled-metrics egress-selector-config-file emulated-version emulation-forward-compatible enable-priority-and-fairness
    encryption-provider-config encryption-provider-config-automatic-reload endpoint-reconciler-type etcd-compaction-interval
    etcd-count-metric-poll-period etcd-db-metric-poll-interval etcd-healthcheck-timeout etcd-readycheck-timeout
    etcd-servers-overrides event-ttl external-hostname feature-gates goaway-chance http2-max-streams-per-connection
    identity-lease-duration-seconds identity-lease-renew-interval-seconds kubelet-certificate-authority
    kubelet-client-certificate kubelet-client-key kubelet-port kubelet-preferred-address-types kubelet-read-only-port kubelet-timeout
    kubernetes-service-node-port lease-reuse-duration-seconds livez-grace-period log-flush-frequency log-json-info-buffer-size
    log-json-split-stream log-text-info-buffer-size log-text-split-stream max-connection-bytes-per-sec
    min-compatibility-version min-request-timeout oidc-ca-file oidc-client-id oidc-groups-claim oidc-groups-prefix
    oidc-issuer-url oidc-required-claim oidc-signing-algs oidc-username-claim oidc-username-prefix
    peer-advertise-ip peer-advertise-port peer-ca-file permit-address-sharing permit-port-sharing profiling
    request-timeout-mutating runtime-config runtime-config-emulation-forward-compatible service-account-api-audiences
    service-account-max-token-expiration service-account-signing-endpoint show-hidden-metrics-for-version
    shutdown-send-retry-after shutdown-watch-termination-grace-period storage-backend storage-initialization-timeout
    storage-media-type tls-cipher-suites tls-min-version tls-sni-cert-key token-auth-file-reload tracing-config-file
    unauthenticated-paths vmodule watch-cache watch-cache-sizes
    """.split(),
    True,
) | dict.fromkeys(
    """
    allow-privileged contention-profiling enable-garbage-collector enable-logs-handler service-account-extend-token-expiration
    service-account-lookup
    """.split(),
    False,
)
