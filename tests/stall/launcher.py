"""The product with a control socket, `python -m stall.launcher up …`: the harness reads and resets measurements of the
process there.

The socket answers one command per connection, in a thread of its own. Scraping `/metrics` for every request would cost
more than most of the requests that are measured. STALL_SOCKETS names a directory; the socket is called by the process'
id.

The memory of the process is limited, so that a request that fills it does not take the host down.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import socket
import threading
from pathlib import Path

from tetrapod.cli.main import main
from tetrapod.generic.http import loop_monitor
from tetrapod.generic.metrics import registry

_PAGE = os.sysconf("SC_PAGE_SIZE")
_MEMORY = 6 << 30
"""Bytes of address space that the process may have: ten times what the costliest of the cases takes."""


def rss() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def peak() -> int:
    """Return the largest resident memory since `reset_peak`, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


def reset_peak() -> None:
    """Let the kernel forget the largest resident memory of this process (man 5 proc, clear_refs)."""
    Path("/proc/self/clear_refs").write_text("5")


def collect() -> None:
    """Run the garbage collector, and return what malloc keeps to the kernel."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def answer(command: str) -> dict[str, float]:
    if command == "reset":
        registry.reset()
        reset_peak()
    if command == "collect":
        collect()
    return {**loop_monitor.longest(), "rss": rss(), "peak": peak()}


def serve(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(json.dumps(answer(connection.recv(100).decode())).encode())


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    control = socket.socket(socket.AF_UNIX)
    control.bind(str(Path(os.environ["STALL_SOCKETS"], str(os.getpid()))))
    control.listen()
    threading.Thread(target=serve, args=(control,), daemon=True, name="stall-control").start()
    main()
