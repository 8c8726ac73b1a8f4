"""The flags of `tetrapod proxy`, which are those of kube-proxy, and their conversion to a `Configuration`.

Upstream: cmd/kube-proxy/app/options.go
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from tetrapod.apps.options.flag import Kind, flag
from tetrapod.kube_proxy.configuration import HEALTHZ_PORT, METRICS_PORT, Configuration, with_port
from tetrapod.kube_proxy.sysctls import Conntrack
from tetrapod.machinery.golang.booleans import parse_bool

_DEFAULTS: Final = Configuration()
_CONNTRACK: Final = Conntrack()
_PROGRAM: Final = "Program"
_API: Final = "API server and node"
_SERVERS: Final = "Health and metrics"
_RULES: Final = "Rules"
_CONNECTIONS: Final = "Connection tracking"
_LOGS: Final = "Logs"
_NO_EFFECT: Final = "Flags without effect"


@dataclass(frozen=True, slots=True)
class ProxyFlags:
    """The values of the flags."""

    config: str = flag("config", "", "The path to the configuration file.", section=_PROGRAM)
    write_config_to: str = flag(
        "write-config-to",
        "",
        "If set, write the default configuration values to this file and exit.",
        section=_PROGRAM,
    )
    cleanup: bool = flag("cleanup", False, "If true cleanup iptables rules and exit.", section=_PROGRAM)
    init_only: bool = flag(
        "init-only",
        False,
        "If true, perform any initialization steps that must be done with full root privileges, and then exit. After "
        "doing this, the proxy can be run again with only the CAP_NET_ADMIN capability.",
        section=_PROGRAM,
    )
    feature_gates: tuple[str, ...] = flag(
        "feature-gates",
        (),
        "A set of key=value pairs that describe feature gates for alpha/experimental features. This parameter is "
        "ignored if a config file is specified by --config.",
        kind=Kind.SETTINGS,
        section=_PROGRAM,
    )
    oom_score_adj: int = flag(
        "oom-score-adj",
        _DEFAULTS.oom_score_adj,
        "The oom-score-adj value for the process. Values must be within the range [-1000, 1000].",
        section=_PROGRAM,
    )
    kubeconfig: str = flag(
        "kubeconfig",
        "",
        "Path to kubeconfig file with authorization information (the master location can be overridden by the master "
        "flag).",
        section=_API,
    )
    master: str = flag(
        "master", "", "The address of the Kubernetes API server (overrides any value in kubeconfig).", section=_API
    )
    hostname_override: str = flag(
        "hostname-override",
        "",
        "If non-empty, will be used as the name of the Node that the proxy is running on. If unset, the node name is "
        "assumed to be the same as the node's hostname.",
        section=_API,
    )
    bind_address: str = flag(
        "bind-address",
        _DEFAULTS.bind_address,
        "Overrides the proxy's idea of what its node's primary IP is. The proxy does not actually bind any sockets to "
        "this IP.",
        section=_API,
    )
    healthz_bind_address: str = flag(
        "healthz-bind-address",
        _DEFAULTS.healthz_bind_address,
        "The IP address and port for the health check server to serve on.",
        section=_SERVERS,
    )
    metrics_bind_address: str = flag(
        "metrics-bind-address",
        _DEFAULTS.metrics_bind_address,
        "The IP address and port for the metrics server to serve on.",
        section=_SERVERS,
    )
    healthz_port: int = flag(
        "healthz-port",
        HEALTHZ_PORT,
        "The port to bind the health check server. Use 0 to disable. Deprecated: use --healthz-bind-address.",
        section=_SERVERS,
    )
    metrics_port: int = flag(
        "metrics-port",
        METRICS_PORT,
        "The port to bind the metrics server. Use 0 to disable. Deprecated: use --metrics-bind-address.",
        section=_SERVERS,
    )
    bind_address_hard_fail: bool = flag(
        "bind-address-hard-fail",
        False,
        "If true, treat failure to bind to a port as fatal and exit.",
        section=_SERVERS,
    )
    profiling: bool = flag(
        "profiling", False, "If true enables profiling via web interface on /debug/pprof handler.", section=_SERVERS
    )
    proxy_mode: str = flag("proxy-mode", "", "Which proxy mode to use: iptables, which is the default.", section=_RULES)
    iptables_masquerade_bit: int = flag(
        "iptables-masquerade-bit",
        _DEFAULTS.masquerade_bit,
        "The bit of the fwmark space to mark packets requiring SNAT with. Must be within the range [0, 31].",
        section=_RULES,
    )
    masquerade_all: bool = flag(
        "masquerade-all",
        False,
        "SNAT all traffic sent via Service cluster IPs. This may be required with some CNI plugins.",
        section=_RULES,
    )
    iptables_localhost_nodeports: bool = flag(
        "iptables-localhost-nodeports",
        True,
        "If false, disable the legacy behavior of allowing NodePort services to be accessed via localhost (IPv4).",
        section=_RULES,
    )
    iptables_sync_period: float = flag(
        "iptables-sync-period",
        _DEFAULTS.sync_period,
        "An interval (e.g. '5s', '1m', '2h22m') indicating how frequently various re-synchronizing and cleanup "
        "operations are performed. Must be greater than 0.",
        section=_RULES,
    )
    iptables_min_sync_period: float = flag(
        "iptables-min-sync-period",
        _DEFAULTS.min_sync_period,
        "The minimum period between iptables rule resyncs (e.g. '5s', '1m', '2h22m'). A value of 0 means every Service "
        "or EndpointSlice change will result in an immediate iptables resync.",
        section=_RULES,
    )
    detect_local_mode: str = flag(
        "detect-local-mode",
        "",
        "Mode to use to detect local traffic: ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix.",
        section=_RULES,
    )
    cluster_cidr: str = flag(
        "cluster-cidr",
        "",
        "The CIDR range of the pods in the cluster. (For dual-stack clusters, this can be a comma-separated dual-stack "
        "pair of CIDR ranges.) When --detect-local-mode is set to ClusterCIDR, traffic is considered to be local if "
        "its source IP is in this range. (Otherwise it is not used.)",
        section=_RULES,
    )
    pod_bridge_interface: str = flag(
        "pod-bridge-interface",
        "",
        "A bridge interface name. When --detect-local-mode is set to BridgeInterface, traffic is considered to be "
        "local if it originates from this bridge.",
        section=_RULES,
    )
    pod_interface_name_prefix: str = flag(
        "pod-interface-name-prefix",
        "",
        "An interface name prefix. When --detect-local-mode is set to InterfaceNamePrefix, traffic is considered to be "
        "local if it originates from any interface whose name begins with this prefix.",
        section=_RULES,
    )
    nodeport_addresses: tuple[str, ...] = flag(
        "nodeport-addresses",
        (),
        "A list of CIDR ranges and/or keywords that expand to CIDR ranges. NodePort services are only accessible on "
        "node IPs covered by the list. Supported keywords: 'primary' (the Node object's primary IPv4 and/or IPv6 "
        "addresses), 'localhost' (127.0.0.0/8 and ::1/128), and 'all' (0.0.0.0/0 and ::/0), which is the default.",
        section=_RULES,
    )
    conntrack_max_per_core: int = flag(
        "conntrack-max-per-core",
        _CONNTRACK.max_per_core,
        "Maximum number of NAT connections to track per CPU core (0 to leave the limit as-is and ignore "
        "conntrack-min).",
        section=_CONNECTIONS,
    )
    conntrack_min: int = flag(
        "conntrack-min",
        _CONNTRACK.min,
        "Minimum number of conntrack entries to allocate, regardless of conntrack-max-per-core (set "
        "conntrack-max-per-core=0 to leave the limit as-is).",
        section=_CONNECTIONS,
    )
    conntrack_tcp_timeout_established: float = flag(
        "conntrack-tcp-timeout-established",
        _CONNTRACK.tcp_established_timeout,
        "Idle timeout for established TCP connections (0 to leave as-is).",
        section=_CONNECTIONS,
    )
    conntrack_tcp_timeout_close_wait: float = flag(
        "conntrack-tcp-timeout-close-wait",
        _CONNTRACK.tcp_close_wait_timeout,
        "NAT timeout for TCP connections in the CLOSE_WAIT state.",
        section=_CONNECTIONS,
    )
    conntrack_tcp_be_liberal: bool = flag(
        "conntrack-tcp-be-liberal",
        False,
        "Enable liberal mode for tracking TCP packets by setting nf_conntrack_tcp_be_liberal to 1.",
        section=_CONNECTIONS,
    )
    conntrack_udp_timeout: float = flag(
        "conntrack-udp-timeout",
        0.0,
        "Idle timeout for UNREPLIED UDP connections (0 to leave as-is).",
        section=_CONNECTIONS,
    )
    conntrack_udp_timeout_stream: float = flag(
        "conntrack-udp-timeout-stream",
        0.0,
        "Idle timeout for ASSURED UDP connections (0 to leave as-is).",
        section=_CONNECTIONS,
    )
    verbosity: int = flag("v", 0, "Number for the log level verbosity.", section=_LOGS)
    logging_format: str = flag(
        "logging-format", "text", "Sets the log format.", choices=("text", "json"), section=_LOGS
    )
    config_sync_period: float = flag(
        "config-sync-period",
        _DEFAULTS.config_sync_period,
        "How often configuration from the apiserver is refreshed. Must be greater than 0.",
        section=_NO_EFFECT,
    )
    kube_api_content_type: str = flag(
        "kube-api-content-type",
        _DEFAULTS.content_type,
        "Content type of requests sent to apiserver.",
        section=_NO_EFFECT,
    )
    kube_api_qps: float = flag(
        "kube-api-qps",
        _DEFAULTS.qps,
        "QPS to use while talking with kubernetes apiserver.",
        kind=Kind.NUMBER,
        section=_NO_EFFECT,
    )
    kube_api_burst: int = flag(
        "kube-api-burst",
        _DEFAULTS.burst,
        "Burst to use while talking with kubernetes apiserver.",
        section=_NO_EFFECT,
    )
    show_hidden_metrics_for_version: str = flag(
        "show-hidden-metrics-for-version",
        "",
        "The previous version for which you want to show hidden metrics.",
        section=_NO_EFFECT,
    )
    vmodule: str = flag("vmodule", "", "Log levels by file.", section=_NO_EFFECT)
    log_flush_frequency: float = flag(
        "log-flush-frequency", 5.0, "Maximum number of seconds between log flushes.", section=_NO_EFFECT
    )


def configuration_of(flags: ProxyFlags, given: Collection[str]) -> Configuration:
    """Return the settings of the flags, for a start without --config.

    Args:
        flags: the values.
        given: the names of the flags that the command line has.

    Raises:
        ValueError: a feature gate has no value, or one that is not a bool. The text is upstream's.
    """
    return Configuration(
        kubeconfig=flags.kubeconfig,
        content_type=flags.kube_api_content_type,
        qps=flags.kube_api_qps,
        burst=flags.kube_api_burst,
        bind_address=flags.bind_address,
        healthz_bind_address=_server_address(flags.healthz_bind_address, flags.healthz_port),
        metrics_bind_address=_server_address(flags.metrics_bind_address, flags.metrics_port),
        bind_address_hard_fail=flags.bind_address_hard_fail,
        enable_profiling=flags.profiling,
        show_hidden_metrics_for_version=flags.show_hidden_metrics_for_version,
        mode=flags.proxy_mode,
        masquerade_bit=flags.iptables_masquerade_bit,
        masquerade_all=flags.masquerade_all,
        localhost_node_ports=flags.iptables_localhost_nodeports,
        sync_period=flags.iptables_sync_period,
        min_sync_period=flags.iptables_min_sync_period,
        detect_local_mode=flags.detect_local_mode,
        bridge_interface=flags.pod_bridge_interface,
        interface_name_prefix=flags.pod_interface_name_prefix,
        cluster_cidrs=tuple(flags.cluster_cidr.split(",")) if "cluster-cidr" in given else (),
        node_port_addresses=flags.nodeport_addresses,
        oom_score_adj=flags.oom_score_adj,
        conntrack=Conntrack(
            max_per_core=flags.conntrack_max_per_core,
            min=flags.conntrack_min,
            tcp_established_timeout=flags.conntrack_tcp_timeout_established,
            tcp_close_wait_timeout=flags.conntrack_tcp_timeout_close_wait,
            tcp_be_liberal=flags.conntrack_tcp_be_liberal,
            udp_timeout=flags.conntrack_udp_timeout,
            udp_stream_timeout=flags.conntrack_udp_timeout_stream,
        ),
        config_sync_period=flags.config_sync_period,
        feature_gates=_gates(flags.feature_gates),
        log_format=flags.logging_format,
        verbosity=flags.verbosity,
    )


def with_flags(configuration: Configuration, flags: ProxyFlags, given: Collection[str]) -> Configuration:
    """Return the settings with the values of flags that precede those of a file.

    Args:
        configuration: the settings.
        flags: the values of the flags.
        given: the names of the flags that the command line has.

    Raises:
        ValueError: --hostname-override consists of spaces. The text is upstream's.
    """
    changes: dict[str, object] = {}
    if flags.hostname_override:
        if not flags.hostname_override.strip():
            raise ValueError("empty hostname-override is invalid")
        changes["hostname_override"] = flags.hostname_override.strip().lower()
    if "v" in given:
        changes["verbosity"] = flags.verbosity
    if "logging-format" in given:
        changes["log_format"] = flags.logging_format
    return replace(configuration, **changes)  # type: ignore[arg-type]


def _server_address(address: str, port: int) -> str:
    return with_port(address, port) if port else ""


def _gates(settings: tuple[str, ...]) -> dict[str, bool]:
    gates = {}
    for setting in settings:
        name, equals, value = (part.strip() for part in setting.partition("="))
        if not equals:
            raise ValueError(f"missing bool value for {name}")
        gates[name] = parse_bool(value)
    return gates
