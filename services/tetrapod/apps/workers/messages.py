"""The messages between the supervisor and a worker, over a pair of sockets that keep message boundaries."""

from __future__ import annotations

from typing import Final

MESSAGE_SIZE: Final = 4096
"""The longest message in bytes."""
REPORT_INTERVAL: Final = 1.0
"""Seconds between two reports of a worker, from its event loop."""

# from the supervisor
CONNECTION: Final = b"connection"
"""An accepted connection: the message carries its file descriptor."""
STOP: Final = b"stop"
"""The whole server shuts down."""
RETIRE: Final = b"retire"
"""The answer to STOPPING if the other workers go on."""

# from a worker
LISTENING: Final = b"listening"
"""The worker serves connections."""
READY: Final = b"ready"
"""The post-start hooks have finished. Lines that describe the server follow."""
ALIVE: Final = b"alive"
"""A report, followed by the number of open connections."""
STOPPING: Final = b"stopping"
"""The worker has received a signal, and asks whether the whole server shuts down."""
CLOSING: Final = b"closing"
"""The worker accepts no more connections. The supervisor then closes its side for sending."""
