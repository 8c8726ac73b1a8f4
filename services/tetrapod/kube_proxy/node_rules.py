"""The rules that do not depend on Services: masquerading, forwarding, and the entry of node ports.

Upstream: pkg/proxy/iptables/proxier.go, syncProxyRules
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tetrapod.kube_proxy import chains
from tetrapod.kube_proxy.families import LOOPBACK, Family
from tetrapod.kube_proxy.tables import Table, quoted
from tetrapod.machinery.golang.ip_addresses import Address


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """The settings of these rules.

    Attributes:
        family: the family.
        masquerade_mark: the mark of packets that get the address of the node, in hexadecimal.
        localhost_node_ports: whether node ports can be reached at 127.0.0.1.
        drop_invalid: whether packets are dropped that belong to no connection.
        invalid_counter: the kernel's counter of these packets; "" for none.
    """

    family: Family
    masquerade_mark: str
    localhost_node_ports: bool
    drop_invalid: bool
    invalid_counter: str


def masquerade_mark(bit: int) -> str:
    """Return the mark with one bit set, as upstream writes it."""
    return f"0x{1 << bit:08x}"


def first_tables(settings: NodeSettings) -> tuple[Table, Table]:
    """Return the tables filter and nat with the rules that precede those of Services."""
    mark = settings.masquerade_mark
    filter_table = Table("filter", list(chains.FILTER_CHAINS))
    if settings.localhost_node_ports:
        # The setting of the kernel that lets packets to 127.0.0.1 be forwarded would let other hosts send them, too.
        filter_table.chains.append(chains.KUBELET_FIREWALL)
        filter_table.rules.append(
            f"-A {chains.KUBELET_FIREWALL} {quoted('block incoming localnet connections')} -d 127.0.0.0/8 "
            "! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP"
        )
    postrouting = f"-A {chains.POSTROUTING}"
    masquerade = quoted("kubernetes service traffic requiring SNAT")
    nat_rules = [
        f"{postrouting} -m mark ! --mark {mark}/{mark} -j RETURN",
        f"{postrouting} -j MARK --xor-mark {mark}",  # so that the packet is not masqueraded again
        f"{postrouting} {masquerade} -j MASQUERADE --random-fully",
        f"-A {chains.MARK_MASQUERADE} -j MARK --or-mark {mark}",
    ]
    return filter_table, Table("nat", list(chains.NAT_CHAINS), nat_rules)


def node_port_entries(settings: NodeSettings, addresses: Sequence[Address] | None) -> list[str]:
    """Return the rules that lead to the rules of node ports. They have to be the last ones of their chain.

    Args:
        settings: the settings.
        addresses: the addresses that accept traffic to node ports; None for all addresses of the node.
    """
    head = (
        f"-A {chains.SERVICES} {quoted('kubernetes service nodeports; NOTE: this must be the last rule in this chain')}"
    )
    if addresses is not None:
        accepted = [a for a in addresses if settings.localhost_node_ports or not a.is_loopback]
        return [f"{head} -d {address} -j {chains.NODE_PORTS}" for address in accepted]
    but = "" if settings.localhost_node_ports else f" ! -d {LOOPBACK[settings.family]}"
    return [f"{head} -m addrtype --dst-type LOCAL{but} -j {chains.NODE_PORTS}"]


def forwarding_rules(settings: NodeSettings) -> list[str]:
    """Return the rules that let forwarded packets of Services pass, also if the policy for forwarding is DROP."""
    rules = []
    head, mark = f"-A {chains.FORWARD}", settings.masquerade_mark
    if settings.drop_invalid:
        # A packet outside of TCP's window would not be translated, and reset the connection (kubernetes issue 74839).
        count = f" -m nfacct --nfacct-name {settings.invalid_counter}" if settings.invalid_counter else ""
        rules.append(f"{head} -m conntrack --ctstate INVALID{count} -j DROP")
    rules.append(f"{head} {quoted('kubernetes forwarding rules')} -m mark --mark {mark}/{mark} -j ACCEPT")
    comment = quoted("kubernetes forwarding conntrack rule")
    rules.append(f"{head} {comment} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT")
    return rules
