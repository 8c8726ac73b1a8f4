"""Structured logs: one JSON object on each line, or klog's text, with the audit ID of the request.

They use the standard library's logging and orjson; a richer library would cost a tenth of the start-up budget without a
benefit here.
"""

from __future__ import annotations

import logging
import sys
import time
from contextvars import ContextVar
from typing import Any, Final

import orjson

from tetrapod.generic.observability.tracing.spans import current
from tetrapod.machinery.golang.quoting import go_quote

AUDIT_ID: Final[ContextVar[str]] = ContextVar("audit id", default="")
"""The audit ID of the current request; log lines of each service that the request passes include it."""

ACCESS: Final = "tetrapod.access"
_LETTERS: Final = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}
_VERBOSITY: Final = {logging.DEBUG: 4, logging.INFO: 2}
_STANDARD: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName", "color_message"}


def extras(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields of a log record beyond the standard ones, by name.

    The audit ID and the trace ID of the current request are included.
    """
    fields = {key: value for key, value in record.__dict__.items() if key not in _STANDARD}
    if "audit-ID" not in fields and (audit_id := AUDIT_ID.get()):
        fields["audit-ID"] = audit_id
    if "traceID" not in fields and (span := current()) is not None:
        fields["traceID"] = f"{span.trace.trace_id:032x}"
    return fields


class JSONFormatter(logging.Formatter):
    """A formatter that writes the fields of klog's JSON format."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": round(record.created * 1000, 3),
            "caller": _caller(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        if record.levelno < logging.ERROR:  # klog writes no verbosity for errors
            line["v"] = 3 if record.name == ACCESS else _VERBOSITY.get(record.levelno, 0)
        line.update(extras(record))
        if record.exc_info:
            line["err"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


class TextFormatter(logging.Formatter):
    """A formatter for klog's text format: `I1121 10:00:00.000000 12345 file.py:12] "message" key="value"`.

    A message without fields is not quoted.
    """

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%m%d %H:%M:%S", time.localtime(record.created))
        fields = extras(record)
        message = go_quote(record.getMessage()) if fields else record.getMessage()
        pairs = "".join(f" {key}={_format_value(value)}" for key, value in fields.items())
        head = (
            f"{_LETTERS.get(record.levelno, 'I')}{stamp}."
            f"{int(record.created * 1e6) % 1_000_000:06d} {record.process:7d}"
        )
        text = f"{head} {record.filename}:{record.lineno}] {message}{pairs}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def _caller(record: logging.LogRecord) -> str:
    """Return the source line that logged a record, as `DIRECTORY/FILE:LINE`."""
    return f"{'/'.join(record.pathname.rsplit('/', 2)[-2:])}:{record.lineno}"


def _format_value(value: Any) -> str:
    """Return a value as klog's text format shows it.

    Strings are quoted, multi-line ones become blocks, and other values are plain.
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return str(value)
    text = value if isinstance(value, str) else str(value)
    if "\n" not in text:
        return go_quote(text)
    return "<\n\t" + text.removesuffix("\n").replace("\n", "\n\t") + "\n >"


def configure(log_format: str, verbosity: int) -> None:
    """Configure the root logger to write to stderr, and replace its handlers.

    Args:
        log_format: `json` or `text`.
        verbosity: klog's -v. Below 2 only warnings are logged; 2 adds information, 3 the access log, 4 debug messages.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONFormatter() if log_format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    set_verbosity(verbosity)
    for noisy in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio", "httpx", "grpc"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def set_verbosity(verbosity: int) -> None:
    """Set the levels of the loggers to klog's -v, also at run time.

    Below 2 only warnings are logged; 2 adds information, 3 the access log, 4 debug messages.
    """
    level = logging.DEBUG if verbosity >= 4 else logging.INFO if verbosity >= 2 else logging.WARNING
    logging.getLogger().setLevel(level)
    logging.getLogger(ACCESS).setLevel(logging.INFO if verbosity >= 3 else logging.ERROR)
