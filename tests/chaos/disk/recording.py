"""A SQLite VFS that wraps the one for Unix through ctypes, and records each file operation before it happens.

It copies the function tables and replaces only `xOpen`, `xDelete`, `xWrite`, `xTruncate` and `xSync`; all other calls
go to the original. See sqlite.org/c3ref/vfs.html and io_methods.html. `sqlite3_file` begins with the pointer to its
methods, the only field that is changed.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

# SQLite keeps the pointer to the name as the path of the file, so pass on the same pointer: a Python string would be
# freed too early.
_OPEN = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, POINTER(c_int))
_DELETE = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)
_WRITE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_TRUNCATE = CFUNCTYPE(c_int, c_void_p, c_int64)
_SYNC = CFUNCTYPE(c_int, c_void_p, c_int)


class _Vfs(Structure):
    _fields_ = [
        ("version", c_int),
        ("size_of_file", c_int),
        ("longest_path", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", c_void_p),
        ("delete", c_void_p),
        ("others", c_void_p * 14),
    ]


class _Methods(Structure):
    _fields_ = [
        ("version", c_int),
        ("close", c_void_p),
        ("read", c_void_p),
        ("write", c_void_p),
        ("truncate", c_void_p),
        ("sync", c_void_p),
        ("others", c_void_p * 13),
    ]


class _File(Structure):
    _fields_ = [("methods", POINTER(_Methods))]


@dataclass(frozen=True, slots=True)
class Write:
    file: str
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncate:
    file: str
    size: int


@dataclass(frozen=True, slots=True)
class Sync:
    """A sync: everything that was written to the file before is on the disk."""

    file: str


@dataclass(frozen=True, slots=True)
class Delete:
    file: str


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A write that was acknowledged to a client. `value` is None for a deletion."""

    key: str
    revision: int
    value: bytes | None


Step = Write | Truncate | Sync | Delete | Acknowledged


@dataclass
class Recording:
    steps: list[Step] = field(default_factory=list)


def _library() -> ctypes.CDLL:
    """Return the SQLite library that Python's module uses."""
    sqlite3.connect(":memory:").close()
    loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libsqlite3" in line}
    library = ctypes.CDLL(loaded.pop())
    library.sqlite3_vfs_find.restype = c_void_p
    library.sqlite3_vfs_find.argtypes = [c_char_p]
    library.sqlite3_vfs_register.argtypes = [c_void_p, c_int]
    library.sqlite3_vfs_unregister.argtypes = [c_void_p]
    return library


def can_record() -> bool:
    """Report whether Python uses a shared library of SQLite, on Linux."""
    try:
        _library()
    except (KeyError, OSError, AttributeError):
        return False
    return True


_NAME: Final = b"recording"


class _Recorder:
    """Keeps references to the objects that the C side points to."""

    def __init__(self, unix: _Vfs, recording: Recording, directory: Path) -> None:
        self._steps = recording.steps
        self._directory = str(directory)
        self._names: dict[int, str] = {}  # of open files, by their address
        self._tables: dict[
            int, tuple[_Methods, tuple[Any, ...]]
        ] = {}  # our function tables, by the address of the original
        self._open = _OPEN(unix.open)
        self._delete = _DELETE(unix.delete)
        self._callbacks = (_OPEN(self.open), _DELETE(self.delete))
        self.vfs = _Vfs()
        ctypes.memmove(ctypes.byref(self.vfs), ctypes.byref(unix), ctypes.sizeof(_Vfs))
        self.vfs.name = _NAME
        self.vfs.open, self.vfs.delete = (ctypes.cast(callback, c_void_p).value for callback in self._callbacks)

    def open(self, vfs: int, name: int | None, file: int, flags: int, flags_out: Any) -> int:
        status = self._open(vfs, name, file, flags, flags_out)
        path = "" if name is None else ctypes.string_at(name).decode()
        if status == 0 and path.startswith(self._directory):
            self._names[file] = Path(path).name
            handle = ctypes.cast(file, POINTER(_File)).contents
            address = ctypes.cast(handle.methods, c_void_p).value
            assert address is not None
            if address not in self._tables:
                self._tables[address] = self._table(handle.methods.contents)
            handle.methods = ctypes.pointer(self._tables[address][0])
        return int(status)

    def _table(self, original: _Methods) -> tuple[_Methods, tuple[Any, ...]]:
        write, truncate, sync = _WRITE(original.write), _TRUNCATE(original.truncate), _SYNC(original.sync)

        def on_write(file: int, data: int, size: int, offset: int) -> int:
            self._steps.append(Write(self._names[file], offset, ctypes.string_at(data, size)))
            return int(write(file, data, size, offset))

        def on_truncate(file: int, size: int) -> int:
            self._steps.append(Truncate(self._names[file], size))
            return int(truncate(file, size))

        def on_sync(file: int, flags: int) -> int:
            status = int(sync(file, flags))
            self._steps.append(Sync(self._names[file]))
            return status

        callbacks = (_WRITE(on_write), _TRUNCATE(on_truncate), _SYNC(on_sync))
        table = _Methods()
        ctypes.memmove(ctypes.byref(table), ctypes.byref(original), ctypes.sizeof(_Methods))
        table.write, table.truncate, table.sync = (ctypes.cast(callback, c_void_p).value for callback in callbacks)
        return table, (*callbacks, write, truncate, sync)

    def delete(self, vfs: int, name: bytes, sync_directory: int) -> int:
        if name.decode().startswith(self._directory):
            self._steps.append(Delete(Path(name.decode()).name))
        return int(self._delete(vfs, name, sync_directory))


@contextmanager
def recorded(directory: Path) -> Iterator[Recording]:
    """Record the file operations of databases below `directory`. They must be opened and closed within the context."""
    library = _library()
    found = library.sqlite3_vfs_find(None)
    unix = ctypes.cast(found, POINTER(_Vfs)).contents
    recording = Recording()
    recorder = _Recorder(unix, recording, directory)
    library.sqlite3_vfs_register(ctypes.byref(recorder.vfs), 1)
    try:
        yield recording
    finally:
        library.sqlite3_vfs_unregister(ctypes.byref(recorder.vfs))
        library.sqlite3_vfs_register(found, 1)
