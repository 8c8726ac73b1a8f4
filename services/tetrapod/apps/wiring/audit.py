"""Auditing as the command line asks for it, in any of the servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tetrapod.apps.options import Options
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.request import Handler

if TYPE_CHECKING:
    from tetrapod.generic.audit.audit import Audit
    from tetrapod.generic.audit.options import Delivery, LogOptions, WebhookOptions


def audit_of(options: Options, lifecycle: Lifecycle) -> Audit | None:
    """None where nothing is audited. The backend delivers what it has at the end.

    Raises:
        ValueError: what is configured makes no sense; the text is upstream's.
    """
    if not (options.audit_policy_file or options.audit_log_path or options.audit_webhook_config_file):
        return None
    from tetrapod.generic.audit.options import AuditOptions

    audit = AuditOptions(options.audit_policy_file, _log(options), _webhook(options)).build()
    if audit is not None:
        lifecycle.on_shutdown("audit", audit.backend.close)
    return audit


def audited(handler: Handler, audit: Audit | None) -> Handler:
    if audit is None:
        return handler
    from tetrapod.generic.filters.audit import with_audit

    return with_audit(handler, audit)


def _log(options: Options) -> LogOptions:
    from tetrapod.generic.audit.options import LogOptions

    return LogOptions(
        options.audit_log_path,
        options.audit_log_format,
        options.audit_log_maxage,
        options.audit_log_maxbackup,
        options.audit_log_maxsize,
        options.audit_log_compress,
        _delivery(options, "log"),
    )


def _webhook(options: Options) -> WebhookOptions:
    from tetrapod.generic.audit.options import WebhookOptions

    return WebhookOptions(options.audit_webhook_config_file, options.audit_webhook_initial_backoff, _delivery(options, "webhook"))


def _delivery(options: Options, plugin: str) -> Delivery:
    from tetrapod.generic.audit.buffered import BatchConfig
    from tetrapod.generic.audit.options import Delivery

    def of(name: str) -> Any:
        return getattr(options, f"audit_{plugin}_{name}")

    batch = BatchConfig(
        of("batch_buffer_size"),
        of("batch_max_size"),
        of("batch_max_wait"),
        of("batch_throttle_enable"),
        of("batch_throttle_qps"),
        of("batch_throttle_burst"),
        concurrent=plugin == "webhook",  # a file has no use for batches out of order
    )
    return Delivery(of("mode"), batch, of("truncate_enabled"), of("truncate_max_event_size"), of("truncate_max_batch_size"), of("version"))
