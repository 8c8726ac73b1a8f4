"""Reads and writes a `Configuration` as the KubeProxyConfiguration of a file (--config, --write-config-to).

Upstream: staging/src/k8s.io/kube-proxy/config/v1alpha1/types.go; pkg/proxy/apis/config/v1alpha1;
cmd/kube-proxy/app/options.go, loadConfig
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Final

from tetrapod.generic.configuration.files import file_error_text
from tetrapod.generic.configuration.loading import NotRegistered, load
from tetrapod.generic.configuration.schemas import (
    boolean,
    duration,
    integer,
    kind,
    list_of,
    map_of,
    pointer,
    raw,
    string,
    strings,
    struct,
)
from tetrapod.kube_proxy.configuration import (
    HEALTHZ_PORT,
    METRICS_PORT,
    Configuration,
    default_server_addresses,
    with_port,
)
from tetrapod.kube_proxy.sysctls import Conntrack
from tetrapod.machinery.golang.durations import format_duration, parse_duration
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.serializer import yaml

log = logging.getLogger(__name__)

API_VERSION: Final = "kubeproxy.config.k8s.io/v1alpha1"
KIND: Final = "KubeProxyConfiguration"
_CONNTRACK_DURATIONS: Final = {
    "tcpEstablishedTimeout": "tcp_established_timeout",
    "tcpCloseWaitTimeout": "tcp_close_wait_timeout",
    "udpTimeout": "udp_timeout",
    "udpStreamTimeout": "udp_stream_timeout",
}
_TOP_LEVEL: Final = {
    "hostnameOverride": "hostname_override",
    "bindAddress": "bind_address",
    "bindAddressHardFail": "bind_address_hard_fail",
    "enableProfiling": "enable_profiling",
    "showHiddenMetricsForVersion": "show_hidden_metrics_for_version",
    "mode": "mode",
    "detectLocalMode": "detect_local_mode",
    "oomScoreAdj": "oom_score_adj",
    "featureGates": "feature_gates",
}
"""Fields of the file, and the attributes with the same values."""


def read(path: str) -> Configuration:
    """Return the settings in a file.

    A file with unknown or repeated fields is read without them, and the log says so.

    Raises:
        ValueError: the file cannot be read, or is wrong. The text is upstream's.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ValueError(file_error_text("open", path, error)) from None
    kinds = {(API_VERSION, KIND): _shape()}
    try:
        return from_object(load(data, kinds))
    except NotRegistered as error:
        raise ValueError(f"failed to decode: {error}") from None
    except ValueError as error:
        if not str(error).startswith("strict decoding error: "):
            raise ValueError(f"failed to decode: {error}") from None
        log.warning("Using lenient decoding as strict decoding failed: %s", error)
    return from_object(load(data, kinds, strict=False))


def write(path: str, configuration: Configuration) -> None:
    """Write the settings into a file. Raises OSError if that fails."""
    Path(path).write_bytes(yaml.encode(to_object(configuration)))
    log.info("Wrote configuration to %s", path)


def from_object(obj: Object) -> Configuration:
    """Return the settings in a KubeProxyConfiguration, with defaults for those that are missing."""
    values: dict[str, Any] = {name: obj[key] for key, name in _TOP_LEVEL.items() if key in obj}
    values |= _addresses(obj, values.get("bind_address", "0.0.0.0"))
    client, iptables, local, logging_ = (
        obj.get(part) or {} for part in ("clientConnection", "iptables", "detectLocal", "logging")
    )
    for key, name in (
        ("kubeconfig", "kubeconfig"),
        ("contentType", "content_type"),
        ("qps", "qps"),
        ("burst", "burst"),
    ):
        if client.get(key):
            values[name] = client[key]
    for key, name in (("masqueradeBit", "masquerade_bit"), ("masqueradeAll", "masquerade_all")):
        if key in iptables:
            values[name] = iptables[key]
    if "localhostNodePorts" in iptables:
        values["localhost_node_ports"] = iptables["localhostNodePorts"]
    durations = ((iptables, "syncPeriod", "sync_period"), (iptables, "minSyncPeriod", "min_sync_period"))
    for owner, key, name in (*durations, (obj, "configSyncPeriod", "config_sync_period")):
        if seconds := parse_duration(owner[key]) if owner.get(key) else 0.0:
            values[name] = seconds
    values["bridge_interface"] = local.get("bridgeInterface", "")
    values["interface_name_prefix"] = local.get("interfaceNamePrefix", "")
    values["cluster_cidrs"] = tuple(obj["clusterCIDR"].split(",")) if obj.get("clusterCIDR") else ()
    values["node_port_addresses"] = tuple(obj.get("nodePortAddresses") or ())
    values["conntrack"] = _conntrack(obj.get("conntrack") or {})
    values["log_format"] = logging_.get("format") or "text"
    values["verbosity"] = logging_.get("verbosity", 0)
    return Configuration(**values)


def _addresses(obj: Object, bind_address: str) -> dict[str, str]:
    healthz, metrics = default_server_addresses(bind_address)
    given_healthz, given_metrics = obj.get("healthzBindAddress"), obj.get("metricsBindAddress")
    return {
        "healthz_bind_address": (
            with_port(given_healthz, HEALTHZ_PORT) if given_healthz else f"{healthz}:{HEALTHZ_PORT}"
        ),
        "metrics_bind_address": (
            with_port(given_metrics, METRICS_PORT) if given_metrics else f"{metrics}:{METRICS_PORT}"
        ),
    }


def _conntrack(obj: Object) -> Conntrack:
    values: dict[str, Any] = {
        name: parse_duration(obj[key]) for key, name in _CONNTRACK_DURATIONS.items() if obj.get(key)
    }
    for key, name in (("maxPerCore", "max_per_core"), ("min", "min"), ("tcpBeLiberal", "tcp_be_liberal")):
        if key in obj:
            values[name] = obj[key]
    return Conntrack(**values)


def to_object(configuration: Configuration) -> Object:
    """Return the settings as a KubeProxyConfiguration. Settings that only other modes have are empty."""
    obj: Object = {"apiVersion": API_VERSION, "kind": KIND}
    obj |= {key: getattr(configuration, name) for key, name in _TOP_LEVEL.items()}
    if configuration.feature_gates:
        obj["featureGates"] = dict(configuration.feature_gates)
    else:
        del obj["featureGates"]
    conntrack = configuration.conntrack
    return obj | {
        "clientConnection": {
            "acceptContentTypes": "",
            "burst": configuration.burst,
            "contentType": configuration.content_type,
            "kubeconfig": configuration.kubeconfig,
            "qps": int(configuration.qps) if configuration.qps == int(configuration.qps) else configuration.qps,
        },
        "clusterCIDR": ",".join(configuration.cluster_cidrs),
        "configSyncPeriod": format_duration(configuration.config_sync_period),
        "conntrack": {
            "maxPerCore": conntrack.max_per_core,
            "min": conntrack.min,
            "tcpBeLiberal": conntrack.tcp_be_liberal,
            **{key: format_duration(getattr(conntrack, name)) for key, name in _CONNTRACK_DURATIONS.items()},
        },
        "detectLocal": {
            "bridgeInterface": configuration.bridge_interface,
            "interfaceNamePrefix": configuration.interface_name_prefix,
        },
        "healthzBindAddress": configuration.healthz_bind_address,
        "iptables": {
            "localhostNodePorts": configuration.localhost_node_ports,
            "masqueradeAll": configuration.masquerade_all,
            "masqueradeBit": configuration.masquerade_bit,
            "minSyncPeriod": format_duration(configuration.min_sync_period),
            "syncPeriod": format_duration(configuration.sync_period),
        },
        "logging": {
            "flushFrequency": "5s",
            "format": configuration.log_format,
            "options": {"json": {"infoBufferSize": "0"}, "text": {"infoBufferSize": "0"}},
            "verbosity": configuration.verbosity,
        },
        "metricsBindAddress": configuration.metrics_bind_address,
        "nodePortAddresses": list(configuration.node_port_addresses) or None,
        "portRange": "",
        **_other_modes(),
    }


def _other_modes() -> Object:
    periods = {"minSyncPeriod": "0s", "syncPeriod": "0s"}
    timeouts = {"tcpFinTimeout": "0s", "tcpTimeout": "0s", "udpTimeout": "0s"}
    return {
        "ipvs": {"excludeCIDRs": None, "scheduler": "", "strictARP": False, **periods, **timeouts},
        "nftables": {"masqueradeAll": False, "masqueradeBit": 14, **periods},
        "winkernel": {
            "enableDSR": False,
            "forwardHealthCheckVip": False,
            "networkName": "",
            "rootHnsEndpointName": "",
            "sourceVip": "",
        },
    }


def _shape() -> SchemaNode:
    return kind(
        KIND,
        featureGates=map_of(boolean("*")),
        clientConnection=struct(
            "v1alpha1.ClientConnectionConfiguration",
            kubeconfig=string(),
            acceptContentTypes=string(),
            contentType=string(),
            qps=_number(),
            burst=_int32(),
        ),
        logging=struct(
            "v1.LoggingConfiguration",
            format=string(),
            flushFrequency=duration(),
            verbosity=_int32(),
            vmodule=list_of(raw()),
            options=raw(),
        ),
        **{name: string() for name in ("hostnameOverride", "bindAddress", "healthzBindAddress", "metricsBindAddress")},
        **{name: boolean() for name in ("bindAddressHardFail", "enableProfiling", "windowsRunAsService")},
        **{name: string() for name in ("showHiddenMetricsForVersion", "mode", "detectLocalMode", "clusterCIDR")},
        portRange=string(),
        oomScoreAdj=pointer(_int32()),
        configSyncPeriod=duration(),
        nodePortAddresses=strings(),
        detectLocal=struct("v1alpha1.DetectLocalConfiguration", bridgeInterface=string(), interfaceNamePrefix=string()),
        conntrack=struct(
            "v1alpha1.KubeProxyConntrackConfiguration",
            maxPerCore=pointer(_int32()),
            min=pointer(_int32()),
            tcpEstablishedTimeout=pointer(duration()),
            tcpCloseWaitTimeout=pointer(duration()),
            tcpBeLiberal=boolean(),
            udpTimeout=duration(),
            udpStreamTimeout=duration(),
        ),
        iptables=struct(
            "v1alpha1.KubeProxyIPTablesConfiguration",
            masqueradeBit=pointer(_int32()),
            masqueradeAll=boolean(),
            localhostNodePorts=boolean("*"),
            **_periods(),
        ),
        nftables=struct(
            "v1alpha1.KubeProxyNFTablesConfiguration",
            masqueradeBit=pointer(_int32()),
            masqueradeAll=boolean(),
            **_periods(),
        ),
        ipvs=struct(
            "v1alpha1.KubeProxyIPVSConfiguration",
            scheduler=string(),
            excludeCIDRs=strings(),
            strictARP=boolean(),
            tcpTimeout=duration(),
            tcpFinTimeout=duration(),
            udpTimeout=duration(),
            **_periods(),
        ),
        winkernel=struct(
            "v1alpha1.KubeProxyWinkernelConfiguration",
            networkName=string(),
            sourceVip=string(),
            enableDSR=boolean(),
            rootHnsEndpointName=string(),
            forwardHealthCheckVip=boolean(),
        ),
    )


def _int32() -> SchemaNode:
    return integer("int32")


def _periods() -> dict[str, SchemaNode]:
    return {"syncPeriod": duration(), "minSyncPeriod": duration()}


def _number() -> SchemaNode:
    node = SchemaNode("number")
    node.format = "float"
    return node
