"""The log backend: one line for each event, in a file that may be rotated, or on standard output.

Upstream: plugin/pkg/audit/log/backend.go
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from tetrapod.generic.audit.event import Event, legacy_line
from tetrapod.generic.audit.metrics import plugin_error
from tetrapod.generic.audit.rotation import RotatingFile, RotationConfig
from tetrapod.generic.configuration.process_lock import ProcessLock

LEGACY: Final = "legacy"
JSON: Final = "json"
FORMATS: Final = (LEGACY, JSON)
_NAME: Final = "log"


class Writer(Protocol):
    """A destination of log lines. `write` raises OSError or ValueError if the line cannot be written."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class StandardOutput:
    """The `Writer` for standard output, which is flushed after each line."""

    def write(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def close(self) -> None:
        """Do nothing: standard output stays open."""


class PlainFile:
    """The `Writer` for the file `path`, which is appended to and never rotated. The file must exist."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_APPEND | os.O_WRONLY)

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._fd, data) :]

    def close(self) -> None:
        os.close(self._fd)


class SharedWriter:
    """The `Writer` of a log that several processes write. It writes whole lines, under a lock.

    Args:
        writer: the destination of the lines.
        lock: the lock that all these processes share. It is held while a line is written.
    """

    def __init__(self, writer: Writer, lock: ProcessLock) -> None:
        self._writer, self._lock = writer, lock

    def write(self, data: bytes) -> None:
        with self._lock:
            if isinstance(self._writer, RotatingFile):
                self._writer.follow()
            self._writer.write(data)

    def close(self) -> None:
        self._writer.close()
        self._lock.close()


def open_shared_writer(path: str, rotation: RotationConfig, locks: Path) -> Writer:
    """Open a log for appending that several processes write. The caller closes the result.

    Args:
        path: the file, or `-` for standard output.
        rotation: the limits of rotation. A `max_bytes` of 0 means that the file is never rotated.
        locks: the existing directory for the two lock files, which these processes share.

    Raises:
        OSError: a file cannot be created or written.
    """
    writer = open_writer(path, rotation, ProcessLock(locks / "audit-tidy.lock"))
    return SharedWriter(writer, ProcessLock(locks / "audit.lock"))


def open_writer(path: str, rotation: RotationConfig, tidying: ProcessLock | None = None) -> Writer:
    """Open the log for appending; the file and its directories are created if necessary.

    Args:
        path: the file, or `-` for standard output.
        rotation: the limits of rotation. A `max_bytes` of 0 means that the file is never rotated.
        tidying: the lock that a process holds while it compresses and removes rotated files; None if only one process
            writes the log.

    Raises:
        OSError: the file cannot be created or written.
    """
    if path == "-":
        return StandardOutput()
    file = Path(path)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(file, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600))
    return RotatingFile(file, rotation, tidying) if rotation.max_bytes else PlainFile(file)


class LogBackend:
    """The backend that writes one line for each event.

    It writes in the event loop: copying a line into the page cache takes about 10 µs, less than a thread would cost.

    Args:
        writer: the destination of the lines; `close` closes it.
        log_format: `JSON` or `LEGACY`.
    """

    def __init__(self, writer: Writer, log_format: str = JSON) -> None:
        self._writer, self._format = writer, log_format

    async def process(self, events: Sequence[Event]) -> bool:
        success = True
        for event in events:
            line = event.line() if self._format == JSON else f"{legacy_line(event)}\n".encode()
            try:
                self._writer.write(line)
            except (OSError, ValueError) as error:
                plugin_error(_NAME, error, (event,))
                success = False
        return success

    async def close(self) -> None:
        self._writer.close()
