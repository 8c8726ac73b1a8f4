"""Auditing, as the flags configure it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tetrapod.apps.options.audit import AuditFlags, DeliveryFlags
from tetrapod.apps.options.options import Options
from tetrapod.generic.egress.selector import CONTROL_PLANE, EgressSelector
from tetrapod.generic.http.request import Handler
from tetrapod.generic.lifecycle import Lifecycle

if TYPE_CHECKING:
    from pathlib import Path

    from tetrapod.generic.audit.context import Audit
    from tetrapod.generic.audit.options import AuditOptions, Delivery


def build_audit(options: Options, lifecycle: Lifecycle, egress: EgressSelector) -> Audit | None:
    """Create the policy and the backends of auditing, or return None if nothing is audited.

    In a worker process, the log is opened with the locks by which all workers write the same file.

    Args:
        options: the options, whose audit flags are used.
        lifecycle: gets a shutdown hook, which delivers the buffered events and closes the backends.
        egress: selects the dialer of the audit webhook.

    Returns:
        None if there is no policy, or neither a log nor a webhook.

    Raises:
        ValueError: a flag is invalid, or a file cannot be read or written; the text is upstream's.
    """
    flags = options.audit
    if not (flags.policy_file or flags.log.path or flags.webhook.config_file):
        return None
    locks = options.worker.directory if options.worker is not None else None
    audit = _audit_options(flags, locks, egress).build()
    if audit is not None:
        lifecycle.on_shutdown("audit", audit.backend.close)
    return audit


def audited(handler: Handler, audit: Audit | None) -> Handler:
    """Return a handler that audits requests before it calls `handler`. Without `audit` return `handler` itself.

    It is for requests that do not pass through the filters.
    """
    if audit is None:
        return handler
    from tetrapod.generic.filters.audit import with_audit

    return with_audit(handler, audit)


def _audit_options(flags: AuditFlags, locks: Path | None, egress: EgressSelector) -> AuditOptions:
    from tetrapod.generic.audit.options import AuditOptions, LogOptions, WebhookOptions

    log = LogOptions(
        path=flags.log.path,
        format=flags.log.format,
        max_age=flags.log.maxage,
        max_backups=flags.log.maxbackup,
        max_size=flags.log.maxsize,
        compress=flags.log.compress,
        delivery=_delivery(flags.log.delivery, concurrent=False),  # a log needs its batches in order
        locks=locks,
    )
    webhook = WebhookOptions(
        config_file=flags.webhook.config_file,
        initial_backoff=flags.webhook.initial_backoff,
        delivery=_delivery(flags.webhook.delivery, concurrent=True),
        dialer=egress.lookup(CONTROL_PLANE),
    )
    return AuditOptions(policy_file=flags.policy_file, log=log, webhook=webhook)


def _delivery(flags: DeliveryFlags, *, concurrent: bool) -> Delivery:
    from tetrapod.generic.audit.buffered import BatchConfig
    from tetrapod.generic.audit.options import Delivery

    batch = BatchConfig(
        buffer_size=flags.batch_buffer_size,
        max_size=flags.batch_max_size,
        max_wait=flags.batch_max_wait,
        throttle=flags.batch_throttle_enable,
        throttle_qps=flags.batch_throttle_qps,
        throttle_burst=flags.batch_throttle_burst,
        concurrent=concurrent,
    )
    return Delivery(
        mode=flags.mode,
        batch=batch,
        truncate=flags.truncate_enabled,
        max_event_size=flags.truncate_max_event_size,
        max_batch_size=flags.truncate_max_batch_size,
        version=flags.version,
    )
