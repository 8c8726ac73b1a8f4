"""Settings that contradict the node or each other: errors if they never worked, otherwise lines in the log.

Upstream: cmd/kube-proxy/app/server.go, checkBadConfig and checkBadIPConfig
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tetrapod.kube_proxy.configuration import Configuration
from tetrapod.kube_proxy.families import Family, family_of, networks_of, parse_address
from tetrapod.kube_proxy.pod_traffic import CLUSTER_CIDR, NODE_CIDR
from tetrapod.machinery.error_aggregate import aggregate_errors


def doubts(configuration: Configuration, primary: Family, pod_cidrs: Sequence[str]) -> str:
    """Return why traffic to node ports may be accepted at more addresses than intended; "" if they are limited.

    Args:
        configuration: the settings, with CIDRs in place of keywords.
        primary: the family of the node's primary address.
        pod_cidrs: the addresses of the node's pods.
    """
    entries = configuration.node_port_addresses
    if not entries:
        return (
            "nodePortAddresses is unset; NodePort connections will be accepted on all local IPs. Consider using "
            "`--nodeport-addresses primary`"
        )
    of_primary = len(networks_of(primary, entries))
    dual = any(_is_dual(cidrs) for cidrs in (configuration.cluster_cidrs, entries, pod_cidrs))
    if dual and of_primary == len(entries):
        return (
            f"cluster appears to be dual-stack but nodePortAddresses contains only {primary.value} addresses; NodePort "
            f"connections will be accepted on all local {primary.other.value} IPs"
        )
    if not of_primary:
        return (
            f"cluster appears to be {primary.value}-primary but nodePortAddresses contains only {primary.other.value} "
            f"addresses; NodePort connections will be accepted on all local {primary.value} IPs"
        )
    return ""


def _is_dual(cidrs: Sequence[str]) -> bool:
    return all(networks_of(family, cidrs) for family in Family)


def mismatches(
    configuration: Configuration, primary: Family, pod_cidrs: Sequence[str], *, dual_stack: bool
) -> tuple[str, bool]:
    """Return an error text for settings of the wrong family ("" for none), and whether the proxy cannot work so.

    Args:
        configuration: the settings.
        primary: the family of the node's primary address.
        pod_cidrs: the addresses of the node's pods.
        dual_stack: whether this machine has rules of both families.
    """
    errors = list(_mismatches(configuration, primary, pod_cidrs, dual_stack=dual_stack))
    return aggregate_errors(text for text, _ in errors), any(fatal for _, fatal in errors)


def _mismatches(
    configuration: Configuration, primary: Family, pod_cidrs: Sequence[str], *, dual_stack: bool
) -> Iterator[tuple[str, bool]]:
    wrong, mode = primary.other, configuration.detect_local_mode
    cluster = f"cluster is {primary.value}-{'primary' if dual_stack else 'only'}"
    if _all_of(configuration.cluster_cidrs, wrong):
        fatal = mode == CLUSTER_CIDR and not dual_stack
        yield f"{cluster} but clusterCIDRs contains only {wrong.value} addresses", fatal
    if _all_of(pod_cidrs, wrong):
        yield f"{cluster} but node.spec.podCIDRs contains only {wrong.value} addresses", mode == NODE_CIDR
    if dual_stack:
        return
    for name, address in (
        ("healthzBindAddress", configuration.healthz_bind_address),
        ("metricsBindAddress", configuration.metrics_bind_address),
    ):
        parsed = parse_address(address.rpartition(":")[0].strip("[]"))
        if parsed is not None and family_of(parsed) is wrong and not parsed.is_unspecified:
            yield f"{cluster} but {name} is {wrong.value}", False


def _all_of(cidrs: Sequence[str], family: Family) -> bool:
    return bool(cidrs) and len(networks_of(family, cidrs)) == len(cidrs)
