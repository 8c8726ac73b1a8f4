"""Checks a `Configuration`, with upstream's error texts.

Upstream: pkg/proxy/apis/config/validation/validation.go
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tetrapod.kube_proxy.configuration import IPTABLES, Configuration
from tetrapod.kube_proxy.families import family_of, parse_address, parse_network
from tetrapod.kube_proxy.node_ports import KEYWORDS
from tetrapod.kube_proxy.pod_traffic import BRIDGE_INTERFACE, CLUSTER_CIDR, INTERFACE_NAME_PREFIX, LOCAL_MODES
from tetrapod.machinery.field import FieldError, aggregate, child, duplicate, index, invalid, not_supported
from tetrapod.machinery.golang.durations import format_duration

_ROOT: Final = "KubeProxyConfiguration"
_AT_LEAST_0: Final = "must be greater than or equal to 0"
_POSITIVE: Final = "must be greater than 0"
_PAIR: Final = "must be a either a single CIDR or dual-stack pair of CIDRs (e.g. [10.100.0.0/16, fde4:8dba:82e1::/48]"
_MODES: Final = (IPTABLES, "ipvs", "nftables")


def check(configuration: Configuration) -> None:
    """Check the settings.

    Raises:
        ValueError: some of them are invalid. The text is upstream's.
    """
    errors = list(_errors(configuration))
    if errors:
        raise ValueError(aggregate(errors))
    if configuration.mode not in ("", IPTABLES):
        raise ValueError(f"the mode {configuration.mode} does not exist here, only iptables (docs/how-to/proxy.md)")


def _errors(configuration: Configuration) -> Iterator[FieldError]:
    bit = configuration.masquerade_bit
    if not 0 <= bit <= 31:
        path = child(_ROOT, "KubeProxyIPTablesConfiguration", "MasqueradeBit")
        yield invalid(path, bit, "must be within the range [0, 31]")
    yield from _linux_errors(configuration)
    if configuration.mode not in ("", *_MODES):
        detail = f"must be {', '.join(_MODES)} or blank (blank means the best-available proxy [currently iptables])"
        yield invalid(child(_ROOT, "Mode", "ProxyMode"), configuration.mode, detail)
    if configuration.burst < 0:
        yield invalid(child(_ROOT, "ClientConnection", "Burst"), configuration.burst, _AT_LEAST_0)
    yield from _period_errors(configuration)
    yield from _address_errors(configuration)
    yield from _node_port_errors(configuration.node_port_addresses)
    if configuration.detect_local_mode not in ("", *LOCAL_MODES):
        path = child(_ROOT, "DetectLocalMode")
        yield not_supported(path, configuration.detect_local_mode, (*LOCAL_MODES, ""))
    yield from _detection_errors(configuration)


def _linux_errors(configuration: Configuration) -> Iterator[FieldError]:
    linux = child(_ROOT, "KubeProxyLinuxConfiguration")
    path, conntrack = child(linux, "KubeProxyConntrackConfiguration"), configuration.conntrack
    for name, number in (("MaxPerCore", conntrack.max_per_core), ("Min", conntrack.min)):
        if number < 0:
            yield invalid(child(path, name), number, _AT_LEAST_0)
    for name, seconds in (
        ("TCPEstablishedTimeout", conntrack.tcp_established_timeout),
        ("TCPCloseWaitTimeout", conntrack.tcp_close_wait_timeout),
        ("UDPTimeout", conntrack.udp_timeout),
        ("UDPStreamTimeout", conntrack.udp_stream_timeout),
    ):
        if seconds < 0:
            yield invalid(child(path, name), format_duration(seconds), _AT_LEAST_0)
    score = configuration.oom_score_adj
    if not -1000 <= score <= 1000:
        yield invalid(child(linux, "OOMScoreAdj"), score, "must be within the range [-1000, 1000]")


def _period_errors(configuration: Configuration) -> Iterator[FieldError]:
    sync, shortest = configuration.sync_period, configuration.min_sync_period
    for name, seconds in (("ConfigSyncPeriod", configuration.config_sync_period), ("SyncPeriod", sync)):
        if seconds <= 0:
            yield invalid(child(_ROOT, name), format_duration(seconds), _POSITIVE)
    minimum = child(_ROOT, "MinSyncPeriod")
    if shortest < 0:
        yield invalid(minimum, format_duration(shortest), _AT_LEAST_0)
    if shortest > sync:
        detail = f"must be greater than or equal to {minimum}"
        yield invalid(child(_ROOT, "SyncPeriod"), format_duration(shortest), detail)


def _address_errors(configuration: Configuration) -> Iterator[FieldError]:
    if parse_address(configuration.bind_address) is None:
        detail = "not a valid textual representation of an IP address"
        yield invalid(child(_ROOT, "BindAddress"), configuration.bind_address, detail)
    if configuration.healthz_bind_address:
        yield from _host_port_errors(configuration.healthz_bind_address, child(_ROOT, "HealthzBindAddress"))
    if configuration.metrics_bind_address:
        yield from _host_port_errors(configuration.metrics_bind_address, child(_ROOT, "MetricsBindAddress"))


def _host_port_errors(text: str, path: str) -> Iterator[FieldError]:
    host, colon, port = text.rpartition(":")
    in_brackets = host.startswith("[") and host.endswith("]")
    if not colon or (":" in host and not in_brackets):
        yield invalid(path, text, "must be IP:port")
        return
    host = host[1:-1] if in_brackets else host
    if parse_address(host) is None:
        yield invalid(path, host, "must be a valid IP")
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65535):
        yield invalid(path, port, "must be a valid port")


def _node_port_errors(entries: Sequence[str]) -> Iterator[FieldError]:
    path = child(_ROOT, "NodePortAddresses")
    for number, entry in enumerate(entries):
        if entry in KEYWORDS:
            if entry in entries[:number]:
                yield duplicate(index(path, number), entry)
        elif parse_network(entry) is None:
            detail = "must be a valid CIDR or one of the keywords 'primary', 'localhost', 'all'"
            yield invalid(index(path, number), entry, detail)


def _detection_errors(configuration: Configuration) -> Iterator[FieldError]:
    path, mode = child(_ROOT, "DetectLocalConfiguration"), configuration.detect_local_mode
    for wanted, name, text in (
        (BRIDGE_INTERFACE, "InterfaceName", configuration.bridge_interface),
        (INTERFACE_NAME_PREFIX, "InterfacePrefix", configuration.interface_name_prefix),
    ):
        if mode == wanted and not text:
            yield invalid(child(path, name), text, "must not be empty")
    if mode == CLUSTER_CIDR and configuration.cluster_cidrs:
        yield from _pair_errors(configuration.cluster_cidrs, child(path, "ClusterCIDRs"))


def _pair_errors(cidrs: tuple[str, ...], path: str) -> Iterator[FieldError]:
    if len(cidrs) > 2:
        yield invalid(path, list(cidrs), _PAIR)
        return
    networks = [parse_network(cidr) for cidr in cidrs]
    for number, network in enumerate(networks):
        if network is None:
            detail = "must be a valid CIDR block (e.g. 10.100.0.0/16 or fde4:8dba:82e1::/48)"
            yield invalid(index(path, number), cidrs[number], detail)
    known = [network for network in networks if network is not None]
    if len(known) == 2 and family_of(known[0]) is family_of(known[1]):
        yield invalid(path, list(cidrs), _PAIR)
