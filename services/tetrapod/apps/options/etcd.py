"""The flags of storage. Upstream: staging/src/k8s.io/apiserver/pkg/server/options/etcd.go."""

from __future__ import annotations

from dataclasses import dataclass

from tetrapod.apps.options.flag import flag
from tetrapod.generic.storage.backend import key_root


@dataclass(frozen=True, slots=True)
class EtcdFlags:
    """The flags of etcd and of encryption at rest. Without --etcd-servers, `up` uses SQLite."""

    servers: tuple[str, ...] = flag(
        "etcd-servers",
        (),
        "List of etcd servers to connect with (scheme://ip:port), comma separated. Without it, `up` stores objects in "
        "SQLite below --data-dir.",
    )
    cafile: str = flag("etcd-cafile", "", "SSL Certificate Authority file used to secure etcd communication.")
    certfile: str = flag("etcd-certfile", "", "SSL certification file used to secure etcd communication.")
    keyfile: str = flag("etcd-keyfile", "", "SSL key file used to secure etcd communication.")
    servers_overrides: tuple[str, ...] = flag(
        "etcd-servers-overrides",
        (),
        "Per-resource etcd servers overrides, comma separated. The individual override format: group/resource#servers, "
        "where servers are URLs, semicolon separated. Note that this applies only to resources compiled into this "
        'server binary. e.g. "/pods#http://etcd4:2379;http://etcd5:2379,/events#http://etcd6:2379".',
    )
    prefix: str = flag("etcd-prefix", "/registry", "The prefix to prepend to all resource paths in etcd.")
    storage_media_type: str = flag(
        "storage-media-type",
        "application/json",
        "The media type to use to store objects in storage. Some resources or storage backends may only support a "
        "specific media type and will ignore this setting. Supported media types: [application/json, application/yaml, "
        "application/vnd.kubernetes.protobuf].",
    )
    compaction_interval: float = flag(
        "etcd-compaction-interval",
        300.0,
        "The interval of compaction requests. If 0, the compaction request from the API server is disabled.",
    )
    healthcheck_timeout: float = flag("etcd-healthcheck-timeout", 2.0, "The timeout to use when checking etcd health.")
    readycheck_timeout: float = flag("etcd-readycheck-timeout", 2.0, "The timeout to use when checking etcd readiness.")
    watch_cache: bool = flag("watch-cache", True, "Enable watch caching in the apiserver.")
    watch_cache_sizes: tuple[str, ...] = flag(
        "watch-cache-sizes",
        (),
        "Watch cache size settings for some resources, in the form resource[.group]#size, comma separated. The only "
        "meaningful size is zero: the store then answers reads of the resource. Other sizes are ignored, because watch "
        "caches size themselves.",
    )
    encryption_provider_config: str = flag(
        "encryption-provider-config",
        "",
        "The file containing configuration for encryption providers to be used for storing secrets.",
    )
    encryption_provider_config_automatic_reload: bool = flag(
        "encryption-provider-config-automatic-reload",
        False,
        "Determines if the file set by --encryption-provider-config should be automatically reloaded if the disk "
        "contents change.",
    )

    @property
    def root(self) -> str:
        """The prefix of all keys, without a slash at its end."""
        return key_root(self.prefix)
