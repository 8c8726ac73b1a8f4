"""The network between the machine and its nodes.

A bridge connects them. It has a network namespace of its own, because packet filters of the machine (such as Docker's)
apply to every bridge in the machine's namespace. The machine itself only gets one interface and routes, and no rules
of iptables. The routes lead to the pods of each node, and through the first node to the cluster IPs of Services.

Nodes have no route to other networks: connections there are rejected at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cluster.commands import run, succeeds
from cluster.settings import HOST, HOST_INTERFACE, NODES, SERVICES, Node
from support.waiting import until

SWITCH: Final = "switch"
"""The name of the process that keeps the bridge's namespace."""
SWITCH_COMMAND: Final = ("unshare", "--net", "sleep", "infinity")
_BRIDGE: Final = "bridge0"
_OUTSIDE: Final = "outside"
_PREFIX: Final = 24


def exists() -> bool:
    """Return whether the machine has the interface of a cluster."""
    return succeeds("ip", "link", "show", HOST_INTERFACE)


def create_switch(pid: int) -> None:
    """Create the bridge in the network namespace of a process, and connect the machine to it."""
    _batch(f"link add {HOST_INTERFACE} type veth peer name host netns {pid}")
    in_namespace(pid, f"link add {_BRIDGE} type bridge", f"link set {_BRIDGE} up", "link set lo up", *_port("host"))
    _batch(f"address add {HOST}/{_PREFIX} dev {HOST_INTERFACE}", f"link set {HOST_INTERFACE} up")


def connect(node: Node, pid: int, switch: int) -> None:
    """Connect the network namespace of a node's process to the bridge, and set the routes from and to the node."""
    in_namespace(switch, f"link add {node.name} type veth peer name eth0 netns {pid}", *_port(node.name))
    in_namespace(
        pid,
        "link set lo up",
        f"address add {node.address}/{_PREFIX} dev eth0",
        "link set eth0 up",
        *(f"route add {other.pods} via {other.address}" for other in NODES if other != node),
        # Without a default route, the kernel does not let a process connect to a cluster IP: it looks for a route
        # before the rules of kube-proxy replace the address.
        f"link add {_OUTSIDE} type veth peer name nowhere",
        "link set nowhere up",
        f"link set {_OUTSIDE} up",
        f"route add default dev {_OUTSIDE} src {node.address}",
    )
    for chain in ("OUTPUT", "FORWARD"):
        # The chain OUTPUT sees the interface of the first route, also if kube-proxy's rules replace the address.
        others = ("--match", "conntrack", "!", "--ctstate", "DNAT")
        outside = ("--out-interface", _OUTSIDE, *others, "--jump", "REJECT")
        run(*enter(pid), "iptables", "--wait", "--append", chain, *outside)
    _batch(f"route add {node.pods} via {node.address}")
    if node == NODES[0]:
        _batch(f"route add {SERVICES} via {node.address}")


def wait_for_namespace(pid: int) -> None:
    """Wait until a process has a network namespace of its own."""
    own = Path("/proc/self/ns/net").readlink()
    until(lambda: Path(f"/proc/{pid}/ns/net").readlink() != own, description=f"the network namespace of process {pid}")


def disconnect() -> None:
    """Remove the interface of the machine, and with it its routes. The namespaces end with their processes."""
    if exists():
        _batch(f"link delete {HOST_INTERFACE}")


def in_namespace(pid: int, *commands: str) -> None:
    """Run commands of ip in the network namespace of a process."""
    _batch(*commands, prefix=enter(pid))


def enter(pid: int) -> tuple[str, ...]:
    """Return the beginning of a command that runs in the network namespace of a process."""
    return ("nsenter", f"--net=/proc/{pid}/ns/net")


def _port(name: str) -> tuple[str, str]:
    return f"link set {name} master {_BRIDGE}", f"link set {name} up"


def _batch(*commands: str, prefix: Sequence[str] = ()) -> None:
    run(*prefix, "ip", "-batch", "-", stdin="\n".join([*commands, ""]))
