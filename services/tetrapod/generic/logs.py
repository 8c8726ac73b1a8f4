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
from tetrapod.machinery.field import go_quote

AUDIT_ID: Final[ContextVar[str]] = ContextVar("audit id", default="")
"""Of the request that is served: what is logged meanwhile says it, in each of the services that it passes."""

ACCESS: Final = "tetrapod.access"
_LETTERS: Final = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}
_VERBOSITY: Final = {logging.DEBUG: 4, logging.INFO: 2}
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
            "caller": _caller(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        if record.levelno < logging.ERROR:  # an error has no verbosity
            line["v"] = 3 if record.name == ACCESS else _VERBOSITY.get(record.levelno, 0)
        line.update(extras(record))
        if record.exc_info:
            line["err"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


class TextFormatter(logging.Formatter):
    """klog's form: `I1121 10:00:00.000000   12345 file.py:12] "message" key="value"`; a message alone is not quoted."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%m%d %H:%M:%S", time.localtime(record.created))
        found = extras(record)
        message = go_quote(record.getMessage()) if found else record.getMessage()
        pairs = "".join(f" {key}={_written(value)}" for key, value in found.items())
        head = f"{_LETTERS.get(record.levelno, 'I')}{stamp}.{int(record.created * 1e6) % 1_000_000:06d} {record.process:7d}"
        text = f"{head} {record.filename}:{record.lineno}] {message}{pairs}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def _caller(record: logging.LogRecord) -> str:
    """The file with its folder, and the line."""
    return f"{'/'.join(record.pathname.rsplit('/', 2)[-2:])}:{record.lineno}"


def _written(value: Any) -> str:
    """As klog writes a value: quoted text, of several lines as a block, all else plain."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return str(value)
    text = value if isinstance(value, str) else str(value)
    if "\n" not in text:
        return go_quote(text)
    return "<\n\t" + text.removesuffix("\n").replace("\n", "\n\t") + "\n >"


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
    logging.getLogger(ACCESS).setLevel(logging.INFO if verbosity >= 3 else logging.ERROR)
