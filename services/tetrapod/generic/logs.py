"""Structured logs: one JSON object a line (or text with `--logging-format=text`), with the request's id where there is one.

The standard library's logging and orjson; a richer library costs a tenth of the start-up budget and adds nothing here.
"""

from __future__ import annotations

import logging
import sys
import time
from contextvars import ContextVar
from typing import Any, Final

import orjson

from tetrapod.generic.tracing.spans import current

AUDIT_ID: Final[ContextVar[str]] = ContextVar("audit id", default="")
"""Of the request that is served: what is logged meanwhile says it, in each of the services that it passes."""

_STANDARD: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName", "color_message"}


def extras(record: logging.LogRecord) -> dict[str, Any]:
    """What is said beside the message; of a request always its audit ID, and its trace's where it has one."""
    found = {key: value for key, value in record.__dict__.items() if key not in _STANDARD}
    if "audit-ID" not in found and (audit_id := AUDIT_ID.get()):
        found["audit-ID"] = audit_id
    if "traceID" not in found and (span := current()) is not None:
        found["traceID"] = f"{span.trace.trace_id:032x}"
    return found


class JSONFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": round(record.created * 1000, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
            **extras(record),
        }
        if record.exc_info:
            line["err"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


class TextFormatter(logging.Formatter):
    """klog's form: `I1121 10:00:00.000000 logger] message key="value"`."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%m%d %H:%M:%S", time.localtime(record.created))
        pairs = "".join(f" {key}={value!r}" for key, value in extras(record).items())
        text = f"{record.levelname[0]}{stamp}.{int(record.msecs * 1000):06d} {record.name}] {record.getMessage()}{pairs}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def configure(log_format: str, verbosity: int) -> None:
    """`verbosity` is klog's -v: below 2 warnings of ours and no access log, 2 information, 3 the access log, 4 debug."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONFormatter() if log_format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    set_verbosity(verbosity)
    for noisy in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio", "httpx", "grpc"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def set_verbosity(verbosity: int) -> None:
    """Also while the server runs (`PUT /debug/flags/v`)."""
    level = logging.DEBUG if verbosity >= 4 else logging.INFO if verbosity >= 2 else logging.WARNING
    logging.getLogger().setLevel(level)
    logging.getLogger("tetrapod.access").setLevel(logging.INFO if verbosity >= 3 else logging.ERROR)
