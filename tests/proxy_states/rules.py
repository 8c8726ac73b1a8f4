"""The rules of a namespace in a form that can be compared."""

from __future__ import annotations

import re
from typing import Final

from support.network_namespace import Namespace

_COUNTERS: Final = re.compile(r" \[\d+:\d+\]$")
_SHARED: Final = re.compile(r"-A KUBE-(SERVICES|NODEPORTS|EXTERNAL-SERVICES|PROXY-FIREWALL) ")
"""Rules in these chains match different packets, except for the entries of node ports, so that their order has no
effect. kube-proxy writes them in random order.
"""
_LAST: Final = "must be the last rule in this chain"
TABLES: Final = ("filter", "nat", "mangle")


KINDS: Final = {
    "cluster IPs": " cluster IP",
    "external IPs": " external IP",
    "load balancers": " loadbalancer IP",
    "source ranges": "-A KUBE-FW-",
    "node ports": "-A KUBE-NODEPORTS ",
    "node ports at localhost": "localhost_nps_accepted_pkts",
    "health check ports": " health check node port",
    "session affinity": "--rcheck",
    "random endpoints": "--probability",
    "local policy": "-A KUBE-SVL-",
    "pod traffic": '"pod traffic for ',
    "no endpoints": " has no endpoints",
    "no local endpoints": " has no local endpoints",
    "UDP": "-p udp",
    "SCTP": "-p sctp",
    "IPv6": "ip6tables-save nat: -A KUBE-SEP-",
}
"""Texts by which the kinds of rules are counted, so that a run shows what it has compared."""


def kinds_in(lines: list[str]) -> set[str]:
    """Return the kinds of rules in the lines of `rules_of`."""
    text = "\n".join(lines)
    return {kind for kind, part in KINDS.items() if part in text}


def rules_of(namespace: Namespace) -> list[str]:
    """Return the chains and rules of both families, each line with its family and table."""
    found = []
    for program in ("iptables-save", "ip6tables-save"):
        for table in TABLES:
            text = namespace.run(program, "-t", table)
            found += [f"{program} {table}: {line}" for line in normalised(text)]
    return found


def normalised(text: str) -> list[str]:
    """Return the lines of a table, with those sorted whose order has no effect."""
    lines = [line for line in text.splitlines() if line and not line.startswith(("#", "*", "COMMIT"))]
    chains = sorted(_COUNTERS.sub("", line) for line in lines if line.startswith(":"))
    rules = [line for line in lines if line.startswith("-A")]
    shared = [line for line in rules if _SHARED.match(line)]
    entries = [line for line in shared if _LAST in line]
    others = [line for line in shared if _LAST not in line]
    first = [line for line in shared if line.startswith("-A KUBE-SERVICES ")]
    assert not entries or first[-len(entries) :] == entries, "the entries of node ports are not the last rules"
    in_order = [line for line in rules if not _SHARED.match(line)]
    # Chains of ports are printed in the order of their creation; rules of one chain keep theirs.
    in_order.sort(key=lambda line: line.split(" ", 2)[1])
    return [*chains, *sorted(others), *sorted(entries), *in_order]
