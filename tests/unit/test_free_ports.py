"""Tests of ports for servers that bind them later: they lie outside the ephemeral range, and none is given out
twice.
"""

from __future__ import annotations

from pathlib import Path

from support.server import free_port


def test_no_connection_is_given_a_port_that_waits_for_its_server() -> None:
    lowest, highest = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    assert not {free_port() for _ in range(200)} & set(range(lowest, highest + 1))


def test_no_port_is_given_twice() -> None:
    ports = [free_port() for _ in range(500)]
    assert len(set(ports)) == len(ports)
