"""The addresses of this node's interfaces."""

from __future__ import annotations

import ipaddress
import socket
import struct
from pathlib import Path
from typing import Final

from tetrapod.kube_proxy.netlink import attributes
from tetrapod.machinery.golang.ip_addresses import Address

_ROUTE: Final = 0
_GET_ADDRESSES, _NEW_ADDRESS, _DONE, _ERROR = 22, 20, 3, 2
_REQUEST_DUMP: Final = 0x301
_ADDRESS, _LOCAL = 1, 2
_HEADER: Final = struct.Struct("=IHHII")
_ADDRESS_HEADER: Final = struct.Struct("=BBBBI")
_IPV6_DISABLED: Final = Path("/proc/sys/net/ipv6/conf/all/disable_ipv6")
_IPV6_INTERFACES: Final = Path("/proc/net/if_inet6")


def interface_addresses() -> list[Address]:
    """Return the addresses of all interfaces, of both families.

    Raises:
        OSError: the kernel does not show them.
    """
    addresses: list[Address] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _ROUTE) as kernel:
        kernel.bind((0, 0))
        size = _HEADER.size + _ADDRESS_HEADER.size
        kernel.send(
            _HEADER.pack(size, _GET_ADDRESSES, _REQUEST_DUMP, 1, 0) + _ADDRESS_HEADER.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
        )
        while True:
            data = kernel.recv(1 << 18)
            while data:
                length, kind, *_ = _HEADER.unpack_from(data)
                message, data = data[_HEADER.size : length], data[(length + 3) & ~3 :]
                if kind == _DONE:
                    return addresses
                if kind == _ERROR:
                    (negative,) = struct.unpack_from("=i", message)
                    raise OSError(-negative, "the kernel does not list addresses")
                if kind == _NEW_ADDRESS:
                    values = attributes(message[_ADDRESS_HEADER.size :])
                    addresses.append(ipaddress.ip_address(values[_LOCAL] if _LOCAL in values else values[_ADDRESS]))


def has_ipv6() -> bool:
    """Return whether the kernel has IPv6 and it is not disabled."""
    if not _IPV6_INTERFACES.exists():
        return False
    try:
        return _IPV6_DISABLED.read_text("utf-8").strip() != "1"
    except OSError:
        return True
