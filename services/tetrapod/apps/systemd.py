"""Notification of systemd: readiness, shutdown, and the heartbeat of its watchdog, by the protocol of sd_notify(3).

Upstream: staging/src/k8s.io/apiserver/pkg/server/genericapiserver.go, NonBlockingRunWithContext, which only sends
READY=1, and does so before the post-start hooks have finished.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import MutableMapping
from typing import Final

log = logging.getLogger(__name__)

_TIMEOUT_SECONDS: Final = 1.0
"""How long a notification waits while the queue of systemd's socket is full, as at boot."""


class ServiceManager:
    """The service manager that started this process, usually systemd. Without NOTIFY_SOCKET all methods do nothing.

    Args:
        environment: the environment of the process. The variables of the protocol are removed, so that child processes
            do not send notifications.
    """

    def __init__(self, environment: MutableMapping[str, str] = os.environ) -> None:
        path = environment.pop("NOTIFY_SOCKET", "")
        self._address = f"\0{path[1:]}" if path.startswith("@") else path  # an abstract socket is written with @
        interval = _heartbeat_interval(environment.pop("WATCHDOG_USEC", ""), environment.pop("WATCHDOG_PID", ""))
        self._interval = interval if path else 0.0

    @property
    def interval(self) -> float:
        """The seconds between two heartbeats, or 0 if the watchdog is disabled."""
        return self._interval

    def ready(self) -> None:
        """Report that the server is ready. From now on the watchdog expects heartbeats."""
        self._notify("READY=1")

    def stopping(self) -> None:
        """Report that the server shuts down. The watchdog still expects heartbeats."""
        self._notify("STOPPING=1")

    def heartbeat(self) -> None:
        """Report that the process works. systemd restarts a process that no longer sends heartbeats."""
        self._notify("WATCHDOG=1")

    def _notify(self, state: str) -> None:
        """Send a state to the service manager. An error is logged: the server works without it.

        Args:
            state: an assignment of the protocol, such as "READY=1".
        """
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
                connection.settimeout(_TIMEOUT_SECONDS)
                connection.connect(self._address)
                connection.send(state.encode())
        except OSError as error:
            log.error("Unable to send %s to systemd: %s", state, error)


def _heartbeat_interval(microseconds: str, process: str) -> float:
    """Return the seconds between heartbeats, half of the watchdog's timeout, or 0 if the watchdog is disabled.

    Args:
        microseconds: WATCHDOG_USEC, the timeout.
        process: WATCHDOG_PID, the process that sends heartbeats; "" for any.
    """
    if not microseconds.isdecimal() or process not in ("", str(os.getpid())):
        return 0.0
    return int(microseconds) / 2e6
