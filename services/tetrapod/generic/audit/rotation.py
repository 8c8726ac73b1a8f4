"""`RotatingFile`: a log file that is rotated when it is full; old files are compressed and removed in a thread.

Names, order and rules are those of gopkg.in/natefinch/lumberjack.v2, with which kube-apiserver writes its audit log:
`audit.log` is renamed to `audit-2006-01-02T15-04-05.000.log`, in UTC, and then maybe compressed to `….log.gz`.
"""

from __future__ import annotations

import contextlib
import gzip
import logging
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from tetrapod.generic.configuration.process_lock import ProcessLock

log = logging.getLogger(__name__)

MEGABYTE: Final = 1024 * 1024
_STAMP: Final = "%Y-%m-%dT%H-%M-%S.%f"
_GZ: Final = ".gz"


@dataclass(frozen=True, slots=True)
class RotationConfig:
    """The limits at which an audit log file is rotated, and at which rotated files are removed.

    Attributes:
        max_bytes: the largest size of the file, and of a single write. With 0, `open_writer` never rotates the
            file.
        max_age_days: the days for which rotated files are kept; 0 for no limit.
        max_backups: the number of rotated files to keep; 0 for no limit.
        compress: whether rotated files are compressed by gzip.
    """

    max_bytes: int = 100 * MEGABYTE
    max_age_days: int = 0
    max_backups: int = 0
    compress: bool = False


class RotatingFile:
    """The log file, which is opened or created at the first write.

    Args:
        path: the file; rotated files are in the same directory.
        config: the limits of rotation.
        tidying: the lock that a process holds while it compresses and removes rotated files; None if only one process
            writes the file.
    """

    def __init__(self, path: Path, config: RotationConfig, tidying: ProcessLock | None = None) -> None:
        self._path, self._config = path, config
        self._tidying_lock = tidying
        self._fd = -1
        self._size = 0
        self._last = datetime.min.replace(tzinfo=UTC)
        self._lock = threading.Lock()
        self._tidying: threading.Thread | None = None
        self._again = False  # more files were rotated since the thread listed them

    def write(self, data: bytes) -> None:
        """Append data, rotating the file first if it would become larger than `RotationConfig.max_bytes`.

        Raises:
            OSError: the file could not be written.
            ValueError: the data alone is larger than `max_bytes`.
        """
        if len(data) > self._config.max_bytes:
            raise ValueError(f"write length {len(data)} exceeds maximum file size {self._config.max_bytes}")
        if self._fd < 0:
            self._open(len(data))
        if self._size + len(data) > self._config.max_bytes:
            self._rotate()
        self._size += len(data)
        while data:
            data = data[os.write(self._fd, data) :]

    def follow(self) -> None:
        """Read the size of the file, or close it if another process has rotated it, so that `write` opens the new one.

        Processes that write the same file call it before each write, while they hold a lock.
        """
        if self._fd < 0:
            return
        with contextlib.suppress(FileNotFoundError):
            status = self._path.stat()
            if status.st_ino == os.fstat(self._fd).st_ino:
                self._size = status.st_size
                return
        os.close(self._fd)
        self._fd = -1

    def close(self) -> None:
        """Close the file, and wait for the thread that compresses and removes rotated files."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        tidying = self._tidying
        if tidying is not None:
            tidying.join()

    def _open(self, length: int) -> None:
        self._tidy_soon()
        try:
            size = self._path.stat().st_size
        except FileNotFoundError:
            self._open_new()
            return
        if size + length >= self._config.max_bytes:
            self._rotate()
            return
        self._fd, self._size = os.open(self._path, os.O_APPEND | os.O_WRONLY), size

    def _rotate(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._open_new()
        self._tidy_soon()

    def _open_new(self) -> None:
        """Rename the present file, if there is one, and create a new one with the same mode and owner.

        The owner is not set if the process may not change it.

        Raises:
            OSError: the file cannot be renamed or created.
        """
        self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        mode, owner = 0o600, None
        with contextlib.suppress(FileNotFoundError):
            status = self._path.stat()
            mode, owner = status.st_mode & 0o777, (status.st_uid, status.st_gid)
            self._path.rename(self._backup_name())
        self._fd = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_APPEND, mode)
        self._size = 0
        if owner is not None and hasattr(os, "chown"):  # not on Windows
            with contextlib.suppress(PermissionError):
                os.chown(self._path, *owner)

    def _backup_name(self) -> Path:
        """Return an unused name for a rotated file, with the current time.

        The time is later than that of the last one, because two rotations within a millisecond must not overwrite each
        other.
        """
        moment = max(datetime.now(UTC), self._last)
        while True:
            name = self._path.with_name(f"{self._path.stem}-{moment.strftime(_STAMP)[:-3]}{self._path.suffix}")
            moment += timedelta(milliseconds=1)
            if not name.exists() and not name.with_name(name.name + _GZ).exists():
                self._last = moment
                return name

    # --- old files

    def _tidy_soon(self) -> None:
        config = self._config
        if not (config.max_backups or config.max_age_days or config.compress):
            return
        with self._lock:
            self._again = True
            if self._tidying is None:
                self._tidying = threading.Thread(target=self._tidy_up, name="audit/rotation", daemon=True)
                self._tidying.start()

    def _tidy_up(self) -> None:
        """Compress and remove rotated files, again if a file has been rotated in that time. Runs in a thread.

        There is only one such thread at a time, because two would compress the same file.
        """
        while True:
            with self._lock:
                if not self._again:
                    self._tidying = None
                    return
                self._again = False
            try:
                with self._tidying_lock or contextlib.nullcontext():
                    self._tidy()
            except OSError as error:
                log.warning("old audit logs of %s cannot be removed: %s", self._path, error)

    def _tidy(self) -> None:
        config = self._config
        backups = self._backups()
        if config.max_backups:
            names = list(dict.fromkeys(_uncompressed(path) for _, path in backups))
            allowed = set(names[: config.max_backups])
            backups = _remove(backups, lambda _, path: _uncompressed(path) not in allowed)
        if config.max_age_days:
            oldest = datetime.now(UTC) - timedelta(days=config.max_age_days)
            backups = _remove(backups, lambda stamp, _: stamp < oldest)
        if config.compress:
            for _, path in backups:
                if path.suffix != _GZ:
                    _compress(path)

    def _backups(self) -> list[tuple[datetime, Path]]:
        """Return the rotated files, compressed or not, with the times in their names, the newest first."""
        prefix, suffix = f"{self._path.stem}-", self._path.suffix
        backups = []
        for path in self._path.parent.iterdir():
            name = _uncompressed(path)
            if not name.startswith(prefix) or not name.endswith(suffix):
                continue
            with contextlib.suppress(ValueError):
                stamp = name[len(prefix) : len(name) - len(suffix)]
                backups.append((datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC), path))
        return sorted(backups, key=lambda pair: pair[0], reverse=True)


def _uncompressed(path: Path) -> str:
    return path.name.removesuffix(_GZ)


def _remove(
    backups: list[tuple[datetime, Path]], unwanted: Callable[[datetime, Path], bool]
) -> list[tuple[datetime, Path]]:
    kept = []
    for stamp, path in backups:
        if unwanted(stamp, path):
            path.unlink(missing_ok=True)
        else:
            kept.append((stamp, path))
    return kept


def _compress(path: Path) -> None:
    target = path.with_name(path.name + _GZ)
    try:
        with path.open("rb") as source, gzip.open(target, "wb") as sink:
            shutil.copyfileobj(source, sink)
        shutil.copymode(path, target)
        path.unlink()
    except OSError:
        target.unlink(missing_ok=True)
