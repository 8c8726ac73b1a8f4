"""`Configuration`: the settings of the proxy, from flags or from a KubeProxyConfiguration.

Upstream: pkg/proxy/apis/config/types.go, pkg/proxy/apis/config/v1alpha1/defaults.go
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from tetrapod.kube_proxy.families import parse_address
from tetrapod.kube_proxy.pod_traffic import CLUSTER_CIDR
from tetrapod.kube_proxy.sysctls import Conntrack
from tetrapod.machinery.golang.ip_addresses import join_host_port

HEALTHZ_PORT: Final = 10256
METRICS_PORT: Final = 10249
IPTABLES: Final = "iptables"


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings of the proxy. Times are seconds.

    Attributes:
        kubeconfig: the file with the API server and the credentials; "" for those of the pod.
        content_type: the media type of requests. It has no effect: our client sends JSON.
        qps: the limit of requests in a second. It has no effect: the client only watches.
        burst: the limit of requests at once. It has no effect.
        hostname_override: the name of this node; "" for the host name.
        bind_address: the address of this node; an unspecified one for that of its Node.
        healthz_bind_address: the address of /healthz; "" for none.
        metrics_bind_address: the address of /metrics; "" for none.
        bind_address_hard_fail: whether the proxy ends if it cannot listen at these addresses.
        enable_profiling: whether the server of metrics has /debug/pprof.
        show_hidden_metrics_for_version: the release whose hidden metrics are shown.
        mode: the kind of the rules; "" for the default.
        masquerade_bit: the number of the bit in the mark of packets that get the address of the node.
        masquerade_all: whether all traffic to cluster IPs gets the address of the node.
        localhost_node_ports: whether node ports can be reached at 127.0.0.1.
        sync_period: the time between two checks of the rules.
        min_sync_period: the shortest time between two writes.
        detect_local_mode: how traffic of pods is recognized.
        bridge_interface: the interface of the mode BridgeInterface.
        interface_name_prefix: the beginning of interfaces' names of the mode InterfaceNamePrefix.
        cluster_cidrs: the addresses of pods, of one or both families.
        node_port_addresses: CIDRs and keywords for the addresses that accept traffic to node ports.
        oom_score_adj: the OOM score adjustment of this process.
        conntrack: the settings of connection tracking.
        config_sync_period: the time after which upstream reads all objects again. It has no effect.
        feature_gates: the feature gates that are set.
        log_format: `text` or `json`.
        verbosity: the level of logs, as klog's -v.
    """

    kubeconfig: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 5.0
    burst: int = 10
    hostname_override: str = ""
    bind_address: str = "0.0.0.0"
    healthz_bind_address: str = f"0.0.0.0:{HEALTHZ_PORT}"
    metrics_bind_address: str = f"127.0.0.1:{METRICS_PORT}"
    bind_address_hard_fail: bool = False
    enable_profiling: bool = False
    show_hidden_metrics_for_version: str = ""
    mode: str = ""
    masquerade_bit: int = 14
    masquerade_all: bool = False
    localhost_node_ports: bool = True
    sync_period: float = 30.0
    min_sync_period: float = 1.0
    detect_local_mode: str = ""
    bridge_interface: str = ""
    interface_name_prefix: str = ""
    cluster_cidrs: tuple[str, ...] = ()
    node_port_addresses: tuple[str, ...] = ()
    oom_score_adj: int = -999
    conntrack: Conntrack = field(default_factory=Conntrack)
    config_sync_period: float = 900.0
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    log_format: str = "text"
    verbosity: int = 0

    def completed(self) -> Configuration:
        """Return the settings with the default mode of the rules, and that for traffic of pods, where unset."""
        return replace(self, mode=self.mode or IPTABLES, detect_local_mode=self.detect_local_mode or CLUSTER_CIDR)


def default_server_addresses(bind_address: str) -> tuple[str, str]:
    """Return the default addresses of /healthz and /metrics without their ports, for an address of the node."""
    address = parse_address(bind_address)
    return ("0.0.0.0", "127.0.0.1") if address is not None and address.version == 4 else ("[::]", "[::1]")


def with_port(address: str, port: int) -> str:
    """Return `address:port` for an address that has no port. Other texts are returned unchanged."""
    return join_host_port(address, port) if parse_address(address) is not None else address
