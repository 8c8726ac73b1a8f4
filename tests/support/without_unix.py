"""Run a module in an interpreter that lacks the parts of Python that Windows lacks.

    python -m support.without_unix MODULE ARGUMENTS…

Modules, functions and constants are removed after the standard library has been imported, which uses some of them
itself. File names and the semantics of Windows' files, sockets and signals are not imitated.
"""

from __future__ import annotations

import asyncio
import concurrent.futures.thread
import functools
import importlib.abc
import importlib.machinery
import logging.handlers
import os
import runpy
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any, Final, NoReturn, cast

IMPORTED_FIRST: Final = (
    concurrent.futures.thread,
    logging.handlers,
    shutil,
    ssl,
    subprocess,
    tempfile,
    urllib.request,
    zipfile,
)
MODULES: Final = frozenset(
    {"curses", "fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty", "uvloop"}
)
FUNCTIONS: Final = """
    chown chroot fchdir fchmod fchown fdatasync fork forkpty getegid geteuid getgid getgroups getloadavg
    getpgid getpriority getuid initgroups killpg lchown lockf major memfd_create minor mkfifo mknod nice
    openpty pathconf pipe2 posix_fadvise posix_fallocate posix_spawn pread preadv pwrite pwritev
    register_at_fork sched_getaffinity sched_setaffinity sched_yield sendfile setegid seteuid setgid setgroups
    setpgid setpriority setsid setuid splice statvfs sync sysconf tcgetpgrp ttyname uname wait wait3 wait4
    waitid
"""
OPEN_FLAGS: Final = """
    O_CLOEXEC O_DIRECTORY O_DSYNC O_NOCTTY O_NOFOLLOW O_NONBLOCK O_SYNC O_PATH
"""
SOCKETS: Final = """
    AF_UNIX AF_NETLINK CMSG_LEN CMSG_SPACE MSG_DONTWAIT MSG_NOSIGNAL SCM_RIGHTS SO_PEERCRED SO_REUSEPORT
    SOCK_CLOEXEC SOCK_NONBLOCK recv_fds send_fds TCP_USER_TIMEOUT
"""
SIGNALS: Final = """
    SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGUSR1 SIGUSR2 SIGWINCH
"""
LOOP: Final = """
    add_reader add_signal_handler add_writer create_unix_connection create_unix_server remove_reader
    remove_signal_handler remove_writer
"""


class Missing(importlib.abc.MetaPathFinder):
    """A finder that reports the modules that Windows lacks as missing."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def windows_locks() -> ModuleType:
    """Return a module with the function `locking` of msvcrt, whose locks belong to an open file, like flock's."""
    import fcntl

    module: Any = ModuleType("msvcrt")
    module.LK_LOCK, module.LK_NBLCK, module.LK_UNLCK = fcntl.LOCK_EX, fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_UN
    module.locking = lambda descriptor, mode, count: fcntl.flock(descriptor, mode)
    return cast(ModuleType, module)


def windows_disk_usage(statvfs: Callable[[Any], os.statvfs_result]) -> Callable[[Any], SimpleNamespace]:
    """Return `shutil.disk_usage` of Windows, which needs no `os.statvfs`. The argument is that function."""

    def disk_usage(path: Any) -> SimpleNamespace:
        found = statvfs(path)
        total, free = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
        return SimpleNamespace(total=total, used=total - free, free=free)

    return disk_usage


def remove() -> None:
    """Remove them from this interpreter."""
    shutil.disk_usage = windows_disk_usage(os.statvfs)  # type: ignore[assignment]
    sys.modules["msvcrt"] = windows_locks()
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Missing())
    # The loop of asyncio wakes itself up over a pair, which is one of TCP sockets on Windows.
    socket.socketpair = functools.partial(socket.socketpair, socket.AF_UNIX)
    for module, names in ((os, FUNCTIONS + OPEN_FLAGS), (socket, SOCKETS), (signal, SIGNALS)):
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    if sys.version_info >= (3, 13):
        os.process_cpu_count = os.cpu_count  # the function of Unix calls sched_getaffinity
    for name in LOOP.split():
        setattr(asyncio.SelectorEventLoop, name, _not_implemented)


def _not_implemented(*arguments: Any, **options: Any) -> NoReturn:
    raise NotImplementedError


if __name__ == "__main__":
    remove()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
