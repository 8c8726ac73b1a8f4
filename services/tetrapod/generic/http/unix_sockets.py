"""Unix sockets on which a service serves the peer services of its host, without TLS.

Only processes of the same user are served: the kernel names the user of the process at the other end (SO_PEERCRED).
Such a process can read the private keys of this one, so it is trusted as the holder of the front proxy's certificate.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

_FAMILY: Final = getattr(socket, "AF_UNIX", None)
"""The address family of Unix sockets; None on Windows."""
_CREDENTIALS: Final = struct.Struct("3i")
"""The process, user and group of SO_PEERCRED (struct ucred in <sys/socket.h>)."""


def is_supported() -> bool:
    """Return whether this system tells the user of a peer process as Linux does (SO_PEERCRED)."""
    return hasattr(socket, "SO_PEERCRED")


def peer_user(connection: Any) -> int:
    """Return the user id of the process at the other end of a connected Unix socket.

    For a client it is the user that called `listen`.

    Args:
        connection: the socket, or what `Transport.get_extra_info("socket")` returns.
    """
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    user: int = _CREDENTIALS.unpack(credentials)[1]
    return user


def is_same_user(connection: Any) -> bool:
    """Return whether the process at the other end of a connected Unix socket runs as the user of this process."""
    return peer_user(connection) == os.geteuid()


def is_unix(transport: Any) -> bool:
    """Return whether a transport is that of a Unix socket."""
    connection = transport.get_extra_info("socket")
    return connection is not None and connection.family == _FAMILY


def bind_unix(path: str) -> socket.socket:
    """Return a non-blocking Unix socket that is bound to a path, and does not listen yet.

    Its file can be opened by the user of this process only. A socket that a process left behind is replaced.

    Args:
        path: the path of the socket, in a directory that exists.

    Raises:
        OSError: the path is not available, for example because a server listens there. The text is Go's.
    """
    listener = socket.socket(socket.AF_UNIX)
    try:
        # On Linux, `bind` gives the file the mode of the socket, so other users can never connect. With a chmod after
        # `bind`, they could until then.
        os.fchmod(listener.fileno(), 0o600)
        _remove_stale(path)
        listener.bind(path)
    except OSError as error:
        listener.close()
        reason = (error.strerror or str(error)).lower()
        raise OSError(
            f"failed to create listener: failed to listen on {path}: listen unix {path}: bind: {reason}"
        ) from None
    listener.setblocking(False)
    return listener


def remove_socket(path: str) -> None:
    """Remove the file of a socket. A missing file is ignored, and so is one that cannot be removed."""
    with suppress(OSError):
        Path(path).unlink(missing_ok=True)


def _remove_stale(path: str) -> None:
    """Remove the socket at `path` if no process listens on it.

    Nothing happens if the path does not exist or is no socket.
    """
    try:
        if not stat.S_ISSOCK(Path(path).stat().st_mode):
            return
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)  # a server that hangs accepts no connections
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            remove_socket(path)
        except BlockingIOError:
            return
