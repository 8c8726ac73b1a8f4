"""The flags of auditing. Upstream: staging/src/k8s.io/apiserver/pkg/server/options/audit.go."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tetrapod.apps.options.flag import Kind, flag, group


@dataclass(frozen=True, slots=True)
class DeliveryFlags:
    """The flags that the audit log and the audit webhook both have. The defaults are those of the webhook."""

    mode: str = flag(
        "mode",
        "batch",
        "Strategy for sending audit events. Blocking indicates sending events should block server responses. Batch "
        "causes the backend to buffer and write events asynchronously. Known modes are batch,blocking,blocking-strict.",
    )
    batch_buffer_size: int = flag(
        "batch-buffer-size",
        10000,
        "The size of the buffer to store events before batching and writing. Only used in batch mode.",
    )
    batch_max_size: int = flag("batch-max-size", 400, "The maximum size of a batch. Only used in batch mode.")
    batch_max_wait: float = flag(
        "batch-max-wait",
        30.0,
        "The amount of time to wait before force writing the batch that hadn't reached the max size. Only used in "
        "batch mode.",
    )
    batch_throttle_enable: bool = flag(
        "batch-throttle-enable", True, "Whether batching throttling is enabled. Only used in batch mode."
    )
    batch_throttle_qps: float = flag(
        "batch-throttle-qps",
        10.0,
        "Maximum average number of batches per second. Only used in batch mode.",
        kind=Kind.NUMBER,
    )
    batch_throttle_burst: int = flag(
        "batch-throttle-burst",
        15,
        "Maximum number of requests sent at the same moment if ThrottleQPS was not utilized before. Only used in batch "
        "mode.",
    )
    truncate_enabled: bool = flag("truncate-enabled", False, "Whether event and batch truncating is enabled.")
    truncate_max_event_size: int = flag(
        "truncate-max-event-size",
        102400,
        "Maximum size of the audit event sent to the underlying backend. If the size of an event is greater than this "
        "number, first request and response are removed, and if this doesn't reduce the size enough, event is "
        "discarded.",
    )
    truncate_max_batch_size: int = flag(
        "truncate-max-batch-size",
        10485760,
        "Maximum size of the batch sent to the underlying backend. If a batch exceeds this limit, it is split into "
        "several batches of smaller size.",
    )
    version: str = flag(
        "version", "audit.k8s.io/v1", "API group and version used for serializing audit events written to the backend."
    )


LOG_DELIVERY: Final = replace(
    DeliveryFlags(),
    mode="blocking",
    batch_max_size=1,
    batch_max_wait=0.0,
    batch_throttle_enable=False,
    batch_throttle_qps=0.0,
    batch_throttle_burst=0,
)
"""The defaults of the audit log, which differ from those of the webhook."""


@dataclass(frozen=True, slots=True)
class AuditLogFlags:
    """The flags of the audit log."""

    path: str = flag(
        "path", "", "If set, all requests coming to the API server will be logged to this file. '-' means standard out."
    )
    format: str = flag(
        "format",
        "json",
        "Format of saved audits. legacy indicates 1-line text format for each event. json indicates structured json "
        "format.",
    )
    maxage: int = flag(
        "maxage",
        366,
        "The maximum number of days to retain old audit log files based on the timestamp encoded in their filename.",
    )
    maxbackup: int = flag(
        "maxbackup",
        100,
        "The maximum number of old audit log files to retain. A value of 0 means there's no restriction on the number "
        "of files.",
    )
    maxsize: int = flag("maxsize", 100, "The maximum size in megabytes of the audit log file before it gets rotated.")
    compress: bool = flag("compress", False, "If set, the rotated log files will be compressed using gzip.")
    delivery: DeliveryFlags = group(LOG_DELIVERY)


@dataclass(frozen=True, slots=True)
class AuditWebhookFlags:
    """The flags of the audit webhook."""

    config_file: str = flag(
        "config-file", "", "Path to a kubeconfig formatted file that defines the audit webhook configuration."
    )
    initial_backoff: float = flag(
        "initial-backoff", 10.0, "The amount of time to wait before retrying the first failed request."
    )
    delivery: DeliveryFlags = group(DeliveryFlags())


@dataclass(frozen=True, slots=True)
class AuditFlags:
    """The flags of auditing."""

    policy_file: str = flag("audit-policy-file", "", "Path to the file that defines the audit policy configuration.")
    log: AuditLogFlags = group(AuditLogFlags(), prefix="audit-log-")
    webhook: AuditWebhookFlags = group(AuditWebhookFlags(), prefix="audit-webhook-")
