"""The options of auditing, validated as upstream validates its flags, and the backends they configure.

Upstream: k8s.io/apiserver/pkg/server/options/audit.go
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tetrapod.generic.audit.backend import Backend, IgnoringErrors, Union
from tetrapod.generic.audit.buffered import BatchConfig, Buffered
from tetrapod.generic.audit.context import Audit
from tetrapod.generic.audit.logfile import FORMATS, JSON, LogBackend, open_shared_writer, open_writer
from tetrapod.generic.audit.policy_file import read_policy
from tetrapod.generic.audit.rotation import MEGABYTE, RotationConfig
from tetrapod.generic.audit.truncate import Truncating
from tetrapod.generic.dialing import Dialer
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.golang.quoting import go_quote

BATCH: Final = "batch"
BLOCKING: Final = "blocking"
BLOCKING_STRICT: Final = "blocking-strict"
MODES: Final = (BATCH, BLOCKING, BLOCKING_STRICT)
VERSION: Final = "audit.k8s.io/v1"
_VERSIONS: Final = f"invalid group version, allowed versions are [{go_quote(VERSION)}]"


@dataclass(frozen=True, slots=True)
class Delivery:
    """How events are delivered to a backend: the flags that `--audit-log-*` and `--audit-webhook-*` have in common.

    Attributes:
        mode: "batch" (requests do not wait for their events), "blocking" (they wait), or "blocking-strict" (they
            also fail if their event RequestReceived is lost).
        batch: the options of the mode "batch".
        truncate: whether events and batches that exceed the next two sizes are truncated.
        max_event_size: the largest size of an event, in bytes of JSON.
        max_batch_size: the largest size of a batch, in bytes of JSON.
        version: the API version of events; only audit.k8s.io/v1 is valid.
    """

    mode: str = BATCH
    batch: BatchConfig = field(default_factory=BatchConfig)
    truncate: bool = False
    max_event_size: int = 100 * 1024
    max_batch_size: int = 10 * 1024 * 1024
    version: str = VERSION

    def problems(self, plugin: str) -> Iterator[str]:
        """Yield the errors of the flags, in upstream's words.

        `plugin` is `log` or `webhook`, as in the names of the flags.
        """
        if self.mode not in MODES:
            yield f"invalid audit {plugin} mode {self.mode}, allowed modes are {go_quote(','.join(MODES))}"
        elif self.mode == BATCH and (problem := self._batch_problem(plugin)):
            yield problem
        if self.max_event_size <= 0:
            yield f"invalid audit truncate {plugin} max event size {self.max_event_size}, must be a positive number"
        elif self.max_batch_size < self.max_event_size:
            yield (
                f"invalid audit truncate {plugin} max batch size {self.max_batch_size}, "
                f"must be greater than max event size ({self.max_event_size})"
            )
        if self.version != VERSION:
            yield _VERSIONS

    def _batch_problem(self, plugin: str) -> str:
        batch = self.batch
        checked: list[tuple[str, float]] = [("buffer size", batch.buffer_size), ("max batch size", batch.max_size)]
        if batch.throttle:
            checked += [("throttle QPS", batch.throttle_qps), ("throttle burst", batch.throttle_burst)]
        for name, value in checked:
            if value <= 0:
                return f"invalid audit batch {plugin} {name} {value:g}, must be a positive number"
        return ""

    def wrap(self, backend: Backend) -> Backend:
        """Return `backend` wrapped by batching or error handling (by the mode), and by truncation if enabled."""
        if self.mode == BATCH:
            backend = Buffered(backend, self.batch)
        elif self.mode == BLOCKING:
            backend = IgnoringErrors(backend)
        return Truncating(backend, self.max_event_size, self.max_batch_size) if self.truncate else backend


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The --audit-log-* flags.

    Attributes:
        path: the log file; "-" for standard output, "" to log nothing.
        format: "json" or "legacy".
        max_age: the days for which rotated files are kept; 0 for no limit.
        max_backups: the number of rotated files that are kept; 0 for no limit.
        max_size: the megabytes at which the file is rotated; 0 to never rotate it.
        compress: whether rotated files are compressed by gzip.
        delivery: how events are delivered.
        locks: the directory of locks between the processes that write the same log; None for one process.
    """

    path: str = ""
    format: str = JSON
    max_age: int = 366
    max_backups: int = 100
    max_size: int = 100
    compress: bool = False
    delivery: Delivery = field(default_factory=lambda: Delivery(BLOCKING))
    locks: Path | None = None

    def problems(self) -> Iterator[str]:
        """Yield the errors of the flags, in upstream's words; none if no path is set."""
        if not self.path:
            return
        yield from self.delivery.problems("log")
        if self.format not in FORMATS:
            yield f"invalid audit log format {self.format}, allowed formats are {go_quote(','.join(FORMATS))}"
        for flag, value in (("maxage", self.max_age), ("maxbackup", self.max_backups), ("maxsize", self.max_size)):
            if value < 0:
                yield f"--audit-log-{flag} {value} can't be a negative number"

    def backend(self) -> Backend:
        """Create the backend, opening the log file.

        Raises:
            ValueError: the file cannot be written; with upstream's text.
        """
        rotation = RotationConfig(self.max_size * MEGABYTE, self.max_age, self.max_backups, self.compress)
        try:
            if self.locks is None:
                writer = open_writer(self.path, rotation)
            else:
                writer = open_shared_writer(self.path, rotation, self.locks)
            return self.delivery.wrap(LogBackend(writer, self.format))
        except OSError as error:
            raise ValueError(f"ensureLogFile: open {self.path}: {(error.strerror or '').lower()}") from None


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """The --audit-webhook-* flags.

    Attributes:
        config_file: the kubeconfig of the webhook; "" for no webhook.
        initial_backoff: the seconds before the first retry.
        delivery: how events are delivered.
        dialer: connects to the webhook by way of a proxy; None to connect directly.
    """

    config_file: str = ""
    initial_backoff: float = 10.0
    delivery: Delivery = field(default_factory=Delivery)
    dialer: Dialer | None = None

    def problems(self) -> Iterator[str]:
        """Yield the errors of the flags, in upstream's words; none if no kubeconfig is set."""
        if self.config_file:
            yield from self.delivery.problems("webhook")

    def backend(self) -> Backend:
        """Create the backend; no connection is opened yet.

        Raises:
            ValueError: the kubeconfig is invalid; with upstream's text.
        """
        from tetrapod.generic.audit.webhook import WebhookBackend
        from tetrapod.generic.webhook.kubeconfig import read_kubeconfig

        try:
            target = read_kubeconfig(self.config_file)
        except ValueError as error:
            raise ValueError(f"initializing audit webhook: {error}") from None
        return self.delivery.wrap(WebhookBackend(target, self.initial_backoff, dialer=self.dialer))


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """The --audit-* flags.

    Attributes:
        policy_file: the path of the policy file; "" audits nothing.
        log: the --audit-log-* flags.
        webhook: the --audit-webhook-* flags.
    """

    policy_file: str = ""
    log: LogOptions = field(default_factory=LogOptions)
    webhook: WebhookOptions = field(default_factory=WebhookOptions)

    def build(self) -> Audit | None:
        """Create the policy and the backends, or return None if nothing is audited.

        Nothing is audited if the policy or all backends are missing.

        Raises:
            ValueError: an option is invalid or a file cannot be read; the text is upstream's.
        """
        problems = [*self.log.problems(), *self.webhook.problems()]
        if problems:
            raise ValueError(aggregate_errors(problems))
        policy = read_policy(self.policy_file) if self.policy_file else None
        if policy is None:
            return None
        backends = [
            part.backend()
            for part, wanted in ((self.log, self.log.path), (self.webhook, self.webhook.config_file))
            if wanted
        ]
        if not backends:
            return None
        return Audit(policy, backends[0] if len(backends) == 1 else Union(backends))
