"""What the command line says, as one frozen record: the only thing that the assembly of a server looks at."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final

from tetrapod.machinery.golang.durations import format_duration

DATABASE: Final = "tetrapod.db"
KEYS: Final = "pki"
"""Of a data directory: what is stored, and certificates."""
_RATES: Final = "_qps"
"""Numbers with fractions that are no times."""
EVERYWHERE: Final = ("0.0.0.0", "::", "")
"""Addresses to listen on that are no address to be reached at."""


@dataclass(frozen=True, slots=True)
class Options:
    """Names are the flags', with underscores. Paths that are not given lie under `data_dir`."""

    data_dir: Path = Path("data")
    bind_address: str = "0.0.0.0"
    advertise_address: str = ""
    external_hostname: str = ""
    secure_port: int = 6443
    cert_dir: str = ""
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    tls_min_version: str = ""
    tls_cipher_suites: tuple[str, ...] = ()
    tls_sni_cert_key: tuple[str, ...] = ()
    client_ca_file: str = ""
    hosts: tuple[str, ...] = ()
    etcd_servers: tuple[str, ...] = ()
    etcd_cafile: str = ""
    etcd_certfile: str = ""
    etcd_keyfile: str = ""
    etcd_prefix: str = "/registry"
    etcd_compaction_interval: float = 300.0
    etcd_healthcheck_timeout: float = 2.0
    etcd_readycheck_timeout: float = 2.0
    encryption_provider_config: str = ""
    encryption_provider_config_automatic_reload: bool = False
    anonymous_auth: bool = True
    authentication_config: str = ""
    authentication_token_webhook_config_file: str = ""
    authentication_token_webhook_version: str = "v1beta1"
    authentication_token_webhook_cache_ttl: float = 120.0
    oidc_issuer_url: str = ""
    oidc_client_id: str = ""
    oidc_ca_file: str = ""
    oidc_username_claim: str = "sub"
    oidc_username_prefix: str = ""
    oidc_groups_claim: str = ""
    oidc_groups_prefix: str = ""
    oidc_signing_algs: tuple[str, ...] = ("RS256",)
    oidc_required_claim: tuple[str, ...] = ()
    token_auth_file: str = ""
    enable_bootstrap_token_auth: bool = False
    authorization_mode: tuple[str, ...] = ("Node", "RBAC")
    authorization_config: str = ""
    authorization_policy_file: str = ""
    authorization_webhook_config_file: str = ""
    authorization_webhook_version: str = "v1beta1"
    authorization_webhook_cache_authorized_ttl: float = 300.0
    authorization_webhook_cache_unauthorized_ttl: float = 30.0
    api_audiences: tuple[str, ...] = ()
    service_account_issuer: tuple[str, ...] = ("https://kubernetes.default.svc",)
    service_account_jwks_uri: str = ""
    service_account_key_file: tuple[str, ...] = ()
    service_account_signing_key_file: str = ""
    service_account_max_token_expiration: float = 0.0
    service_account_extend_token_expiration: bool = True
    requestheader_client_ca_file: str = ""
    requestheader_allowed_names: tuple[str, ...] = ()
    requestheader_username_headers: tuple[str, ...] = ("X-Remote-User",)
    requestheader_group_headers: tuple[str, ...] = ("X-Remote-Group",)
    requestheader_uid_headers: tuple[str, ...] = ("X-Remote-Uid",)
    requestheader_extra_headers_prefix: tuple[str, ...] = ("X-Remote-Extra-",)
    proxy_client_cert_file: str = ""
    proxy_client_key_file: str = ""
    enable_aggregator_routing: bool = False
    aggregator_reject_forwarding_redirect: bool = True
    endpoint_reconciler_type: str = "lease"
    apiserver_count: int = 1
    enable_admission_plugins: tuple[str, ...] = ()
    disable_admission_plugins: tuple[str, ...] = ()
    admission_control_config_file: str = ""
    default_not_ready_toleration_seconds: int = 300
    default_unreachable_toleration_seconds: int = 300
    event_ttl: float = 3600.0
    allow_privileged: bool = True
    profiling: bool = True
    kubelet_certificate_authority: str = ""
    kubelet_client_certificate: str = ""
    kubelet_client_key: str = ""
    kubelet_preferred_address_types: tuple[str, ...] = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
    kubelet_timeout: float = 5.0
    service_cluster_ip_range: str = "10.0.0.0/24"
    service_node_port_range: str = "30000-32767"
    controllers: tuple[str, ...] = ("*",)
    leader_elect: bool = True
    leader_elect_lease_duration: float = 15.0
    leader_elect_renew_deadline: float = 10.0
    leader_elect_retry_period: float = 2.0
    leader_elect_resource_lock: str = "leases"
    leader_elect_resource_name: str = "tetrapod"
    leader_elect_resource_namespace: str = "kube-system"
    request_timeout: float = 60.0
    max_requests_inflight: int = 400
    max_mutating_requests_inflight: int = 200
    enable_priority_and_fairness: bool = True
    tracing_config_file: str = ""
    audit_policy_file: str = ""
    audit_log_path: str = ""
    audit_log_format: str = "json"
    audit_log_maxage: int = 366
    audit_log_maxbackup: int = 100
    audit_log_maxsize: int = 100
    audit_log_compress: bool = False
    audit_webhook_config_file: str = ""
    audit_webhook_initial_backoff: float = 10.0
    audit_log_mode: str = "blocking"
    audit_log_batch_buffer_size: int = 10000
    audit_log_batch_max_size: int = 1
    audit_log_batch_max_wait: float = 0.0
    audit_log_batch_throttle_enable: bool = False
    audit_log_batch_throttle_qps: float = 0.0
    audit_log_batch_throttle_burst: int = 0
    audit_log_truncate_enabled: bool = False
    audit_log_truncate_max_event_size: int = 102400
    audit_log_truncate_max_batch_size: int = 10485760
    audit_log_version: str = "audit.k8s.io/v1"
    audit_webhook_mode: str = "batch"
    audit_webhook_batch_buffer_size: int = 10000
    audit_webhook_batch_max_size: int = 400
    audit_webhook_batch_max_wait: float = 30.0
    audit_webhook_batch_throttle_enable: bool = True
    audit_webhook_batch_throttle_qps: float = 10.0
    audit_webhook_batch_throttle_burst: int = 15
    audit_webhook_truncate_enabled: bool = False
    audit_webhook_truncate_max_event_size: int = 102400
    audit_webhook_truncate_max_batch_size: int = 10485760
    audit_webhook_version: str = "audit.k8s.io/v1"
    break_glass: bool = False
    collection_delay: float = 4.0
    event_loop_warning_threshold: float = 0.1
    fair_scheduling: bool = True
    cors_allowed_origins: tuple[str, ...] = ()
    strict_transport_security_directives: tuple[str, ...] = ()
    shutdown_delay_duration: float = 0.0
    shutdown_grace: float = 10.0
    logging_format: str = "text"
    verbosity: int = 1
    redis_url: str = ""
    redis_password_file: str = ""
    # of one service on its own
    aggregator_url: tuple[str, ...] = ()
    core_url: tuple[str, ...] = ()
    extensions_url: tuple[str, ...] = ()
    auth_url: tuple[str, ...] = ()
    ignored: tuple[str, ...] = field(default=(), repr=False)
    given: frozenset[str] = field(default=frozenset(), repr=False)
    """Flags that the command line names, for those that exclude each other."""

    def flags(self) -> dict[str, str]:
        """As the command line would say it, for /flagz."""
        found = {f.name.replace("_", "-"): _text(f.name, getattr(self, f.name)) for f in fields(self) if f.name not in ("ignored", "given")}
        found["v"] = found.pop("verbosity")
        return found

    @property
    def local_address(self) -> str:
        """Where this host reaches the server, which the administrator's kubeconfig names; for others see `front_door.py`."""
        return self.advertise_address or ("127.0.0.1" if self.bind_address in EVERYWHERE else self.bind_address)

    @property
    def pki(self) -> Path:
        return self.data_dir / KEYS

    @property
    def database(self) -> Path:
        return self.data_dir / DATABASE


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}" if name.endswith(_RATES) else format_duration(value)
    text = f"[{','.join(map(str, value))}]" if isinstance(value, tuple) else str(value)
    return re.sub(r"//[^/@]*@", "//***@", text)  # nobody's password
