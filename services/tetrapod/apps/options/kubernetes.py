"""The flags of admission, Services, Pods, kubelets and aggregation.

Upstream: pkg/kubeapiserver/options/admission.go, cmd/kube-apiserver/app/options/options.go,
pkg/controlplane/apiserver/options/options.go.
"""

from __future__ import annotations

from dataclasses import dataclass

from tetrapod.apps.options.flag import AGGREGATOR, CORE, Kind, flag


@dataclass(frozen=True, slots=True)
class AdmissionFlags:
    """The flags of admission plugins."""

    enable_plugins: tuple[str, ...] = flag(
        "enable-admission-plugins",
        (),
        "Admission plugins that should be enabled in addition to default enabled ones. The order of plugins in this "
        "flag does not matter.",
    )
    disable_plugins: tuple[str, ...] = flag(
        "disable-admission-plugins",
        (),
        "Admission plugins that should be disabled although they are in the default enabled plugins list. The order of "
        "plugins in this flag does not matter.",
    )
    control_config_file: str = flag("admission-control-config-file", "", "File with admission control configuration.")
    default_not_ready_toleration_seconds: int = flag(
        "default-not-ready-toleration-seconds",
        300,
        "Indicates the tolerationSeconds of the toleration for notReady:NoExecute that is added by default to every "
        "pod that does not already have such a toleration.",
        programs=CORE,
    )
    default_unreachable_toleration_seconds: int = flag(
        "default-unreachable-toleration-seconds",
        300,
        "Indicates the tolerationSeconds of the toleration for unreachable:NoExecute that is added by default to every "
        "pod that does not already have such a toleration.",
        programs=CORE,
    )


@dataclass(frozen=True, slots=True)
class APIEnablementFlags:
    """The flags that select the API versions to serve."""

    runtime_config: tuple[str, ...] = flag(
        "runtime-config",
        (),
        "A set of key=value pairs that enable or disable built-in APIs. Supported options are: v1=true|false for the "
        "core API group; GROUP/VERSION=true|false for a specific API group and version (e.g. apps/v1=true), and "
        "GROUP/VERSION/RESOURCE=true|false for a resource of it; api/all=true|false controls all API versions, and "
        "api/ga, api/beta and api/alpha those of the form v[0-9]+, v[0-9]+beta[0-9]+ and v[0-9]+alpha[0-9]+.",
        kind=Kind.SETTINGS,
    )


@dataclass(frozen=True, slots=True)
class WorkloadFlags:
    """The flags of Services, Pods and Events."""

    service_cluster_ip_range: str = flag(
        "service-cluster-ip-range",
        "10.0.0.0/24",
        "A CIDR notation IP range from which to assign service cluster IPs. It must not overlap with any IP ranges "
        "assigned to nodes or pods. Max of two dual-stack CIDRs is allowed; the first one has the default IP family.",
    )
    service_node_port_range: str = flag(
        "service-node-port-range",
        "30000-32767",
        "A port range to reserve for services with NodePort visibility. Inclusive at both ends of the range.",
    )
    kubernetes_service_node_port: int = flag(
        "kubernetes-service-node-port",
        0,
        "If non-zero, the Kubernetes service is of type NodePort when it is created, using this as the value of the "
        "port. If zero, it is of type ClusterIP.",
    )
    allow_privileged: bool = flag("allow-privileged", True, "If true, allow privileged containers.")
    event_ttl: float = flag("event-ttl", 3600.0, "Amount of time to retain events.")
    max_connection_bytes_per_sec: int = flag(
        "max-connection-bytes-per-sec",
        0,
        "If non-zero, throttle each user connection to this number of bytes/sec. Currently only applies to "
        "long-running requests.",
    )


@dataclass(frozen=True, slots=True)
class CoordinationFlags:
    """The flags of coordinated leader election, which has an effect with its feature gate."""

    lease_duration: float = flag(
        "coordinated-leadership-lease-duration", 15.0, "The duration of the lease used for Coordinated Leader Election."
    )
    renew_deadline: float = flag(
        "coordinated-leadership-renew-deadline",
        10.0,
        "The deadline for renewing a coordinated leader election lease.",
    )
    retry_period: float = flag(
        "coordinated-leadership-retry-period",
        2.0,
        "The period for retrying to renew a coordinated leader election lease.",
    )


@dataclass(frozen=True, slots=True)
class AggregationFlags:
    """The flags of connections to aggregated API servers."""

    enable_routing: bool = flag(
        "enable-aggregator-routing",
        False,
        "Turns on aggregator routing requests to endpoints IP rather than cluster IP.",
    )
    reject_forwarding_redirect: bool = flag(
        "aggregator-reject-forwarding-redirect",
        True,
        "Aggregator reject forwarding redirect response back to client.",
    )
    proxy_client_cert_file: str = flag(
        "proxy-client-cert-file",
        "",
        "Client certificate used to prove the identity of the aggregator when it must call out during a request. It is "
        "expected that this cert includes a signature from the CA in the --requestheader-client-ca-file flag.",
    )
    proxy_client_key_file: str = flag(
        "proxy-client-key-file",
        "",
        "Private key for the client certificate used to prove the identity of the aggregator when it must call out "
        "during a request.",
    )
    peer_ca_file: str = flag(
        "peer-ca-file",
        "",
        "If set and the UnknownVersionInteroperabilityProxy feature gate is enabled, this file will be used to verify "
        "serving certificates of peer kube-apiservers. This flag is only used in clusters configured with multiple "
        "kube-apiservers for high availability.",
        programs=AGGREGATOR,
    )
    peer_advertise_ip: str = flag(
        "peer-advertise-ip",
        "",
        "If set and the UnknownVersionInteroperabilityProxy feature gate is enabled, this IP will be used by peer "
        "kube-apiservers to proxy requests to this kube-apiserver when the request cannot be handled by the peer due "
        "to version skew between the kube-apiservers. This flag is only used in clusters configured with multiple "
        "kube-apiservers for high availability.",
        programs=AGGREGATOR,
    )
    peer_advertise_port: str = flag(
        "peer-advertise-port",
        "",
        "If set and the UnknownVersionInteroperabilityProxy feature gate is enabled, this port will be used by peer "
        "kube-apiservers to proxy requests to this kube-apiserver when the request cannot be handled by the peer due "
        "to version skew between the kube-apiservers. This flag is only used in clusters configured with multiple "
        "kube-apiservers for high availability.",
        programs=AGGREGATOR,
    )


@dataclass(frozen=True, slots=True)
class EndpointFlags:
    """The flags that decide how this server appears in the endpoints of the Service `kubernetes`."""

    reconciler_type: str = flag(
        "endpoint-reconciler-type",
        "lease",
        "Use an endpoint reconciler (master-count, lease, none). master-count is deprecated.",
        programs=AGGREGATOR,
        choices=("lease", "master-count", "none"),
    )
    apiserver_count: int = flag(
        "apiserver-count",
        1,
        "The number of apiservers running in the cluster, must be a positive number. In use when "
        "--endpoint-reconciler-type=master-count is enabled.",
        programs=AGGREGATOR,
        minimum=1,
    )


@dataclass(frozen=True, slots=True)
class KubeletFlags:
    """The flags of connections to kubelets."""

    certificate_authority: str = flag(
        "kubelet-certificate-authority",
        "",
        "Path to a cert file for the certificate authority. If blank, certificates are not verified.",
    )
    client_certificate: str = flag("kubelet-client-certificate", "", "Path to a client cert file for TLS.")
    client_key: str = flag("kubelet-client-key", "", "Path to a client key file for TLS.")
    preferred_address_types: tuple[str, ...] = flag(
        "kubelet-preferred-address-types",
        ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"),
        "List of the preferred NodeAddressTypes to use for kubelet connections.",
    )
    timeout: float = flag(
        "kubelet-timeout", 5.0, "Timeout for kubelet operations. It has no effect, as in kube-apiserver."
    )
