"""Settings of the kernel: forwarding of node ports at localhost, and connection tracking.

Upstream: pkg/proxy/conntrack/sysctls.go; pkg/proxy/util/utils.go, EnsureSysctl
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

ROUTE_LOCALNET: Final = "net/ipv4/conf/all/route_localnet"
TCP_BE_LIBERAL: Final = "net/netfilter/nf_conntrack_tcp_be_liberal"
_ROOT: Final = Path("/proc/sys")
_HASH_SIZE: Final = Path("/sys/module/nf_conntrack/parameters/hashsize")
_ONLINE: Final = Path("/sys/devices/system/cpu/online")
_MOST_CONNECTIONS: Final = 1 << 20
"""A limit for machines with many cores, so that the kernel's table does not take too much memory."""


@dataclass(frozen=True, slots=True)
class Conntrack:
    """The settings of connection tracking. Timeouts are seconds; 0 leaves them as they are.

    Attributes:
        max_per_core: the number of connections for each core; 0 leaves the limit as it is.
        min: the smallest limit.
        tcp_established_timeout: the timeout of established connections.
        tcp_close_wait_timeout: the timeout of connections whose client has closed its side.
        tcp_be_liberal: whether packets outside of TCP's window belong to the connection.
        udp_timeout: the timeout of UDP connections without an answer.
        udp_stream_timeout: the timeout of UDP connections with answers.
    """

    max_per_core: int = 32 * 1024
    min: int = 128 * 1024
    tcp_established_timeout: float = 86400.0
    tcp_close_wait_timeout: float = 3600.0
    tcp_be_liberal: bool = False
    udp_timeout: float = 0.0
    udp_stream_timeout: float = 0.0


def read(name: str) -> int | None:
    """Return the value of a setting, or None if the kernel does not have it."""
    try:
        return int((_ROOT / name).read_text("utf-8"))
    except (OSError, ValueError):
        return None


def ensure(name: str, value: int) -> None:
    """Set a setting, unless it has the value.

    Raises:
        OSError: the kernel does not allow it. The text is upstream's.
    """
    existing = read(name)
    if existing == value:
        return
    _write(_ROOT / name, value)
    log.info("Changed sysctl %s from %s to %d", name, existing, value)


def _write(path: Path, value: int) -> None:
    try:
        path.write_text(str(value), "utf-8")
    except OSError as error:
        raise OSError(f"open {path}: {(error.strerror or '').lower()}") from None


def apply(settings: Conntrack) -> None:
    """Apply the settings of connection tracking.

    Raises:
        OSError: the kernel does not allow it. The text is upstream's.
    """
    limit = connection_limit(settings, _cores())
    if limit:
        ensure("net/netfilter/nf_conntrack_max", limit)
        if int(_HASH_SIZE.read_text("utf-8")) < limit // 4:
            _write(_HASH_SIZE, limit // 4)
    for name, seconds in (
        ("tcp_timeout_established", settings.tcp_established_timeout),
        ("tcp_timeout_close_wait", settings.tcp_close_wait_timeout),
        ("tcp_be_liberal", float(settings.tcp_be_liberal)),
        ("udp_timeout", settings.udp_timeout),
        ("udp_timeout_stream", settings.udp_stream_timeout),
    ):
        if seconds > 0:
            ensure(f"net/netfilter/nf_conntrack_{name}", int(seconds))


def connection_limit(settings: Conntrack, cores: int) -> int:
    """Return the largest number of connections to track; 0 to leave it as it is."""
    if settings.max_per_core <= 0:
        return 0
    scaled = settings.max_per_core * cores
    return _MOST_CONNECTIONS if scaled > _MOST_CONNECTIONS else max(scaled, settings.min)


def _cores() -> int:
    """Return the number of cores of the machine, which may be more than this process may use."""
    try:
        text = _ONLINE.read_text("utf-8").strip()
        ranges = [part.partition("-") for part in text.split(",")]
        return sum(int(last or first) - int(first) + 1 for first, _, last in ranges)
    except (OSError, ValueError):
        return os.cpu_count() or 1
