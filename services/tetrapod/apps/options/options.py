"""The options from which a program is assembled."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tetrapod.apps.options.audit import AuditFlags
from tetrapod.apps.options.authentication import AuthenticationFlags
from tetrapod.apps.options.authorization import AuthorizationFlags
from tetrapod.apps.options.etcd import EtcdFlags
from tetrapod.apps.options.flag import (
    AGGREGATOR,
    AUTH,
    CORE,
    SEPARATE,
    declared_flags,
    flag,
    format_value,
    group,
    with_values,
)
from tetrapod.apps.options.generic import (
    EgressFlags,
    FeatureFlags,
    GenericFlags,
    LoggingFlags,
    MetricsFlags,
    TracingFlags,
)
from tetrapod.apps.options.kubernetes import (
    AdmissionFlags,
    AggregationFlags,
    APIEnablementFlags,
    CoordinationFlags,
    EndpointFlags,
    KubeletFlags,
    WorkloadFlags,
)
from tetrapod.apps.options.serving import ServingFlags
from tetrapod.apps.options.signing import SigningFlags
from tetrapod.apps.options.tetrapod import LeaderElectionFlags, PeerFlags, RedisFlags, TetrapodFlags
from tetrapod.apps.options.worker import Worker

DATABASE: Final = "tetrapod.db"
"""The SQLite file in a data directory."""
KEYS: Final = "pki"
"""The directory with certificates and keys in a data directory."""
UNSPECIFIED: Final = ("0.0.0.0", "::", "")
"""Addresses to listen on that are not addresses to connect to."""
_MISC: Final = "Misc flags"
_TETRAPOD: Final = "Tetrapod flags"


@dataclass(frozen=True, slots=True)
class Options:
    """The values of all flags of a program, in groups as upstream has them.

    Attributes:
        data_dir: the directory of files that no flag names.
        ignored: the flags of kube-apiserver on the command line that have no effect here.
        given: the names of the flags on the command line, to detect those that exclude each other.
        shutdown_grace: the seconds that requests in flight have at shutdown.
        worker: the number and the directory of this process among the workers of a server; None if it has one process.
        listener: the bound socket of --secure-port if that was 0, and the kernel chose the port; otherwise None.
    """

    generic: GenericFlags = group(GenericFlags(), "Generic flags")
    etcd: EtcdFlags = group(EtcdFlags(), "Etcd flags")
    serving: ServingFlags = group(ServingFlags(), "Secure serving flags")
    authentication: AuthenticationFlags = group(AuthenticationFlags(), "Authentication flags")
    authorization: AuthorizationFlags = group(AuthorizationFlags(), "Authorization flags", programs=AUTH)
    features: FeatureFlags = group(FeatureFlags(), "Features flags")
    tracing: TracingFlags = group(TracingFlags(), "Traces flags")
    audit: AuditFlags = group(AuditFlags(), "Auditing flags", programs=AGGREGATOR)
    api: APIEnablementFlags = group(APIEnablementFlags(), "API enablement flags")
    egress: EgressFlags = group(EgressFlags(), "Egress selector flags")
    admission: AdmissionFlags = group(AdmissionFlags(), "Admission flags")
    workloads: WorkloadFlags = group(WorkloadFlags(), _MISC, programs=CORE)
    coordination: CoordinationFlags = group(CoordinationFlags(), _MISC, programs=CORE)
    aggregation: AggregationFlags = group(AggregationFlags(), _MISC)
    endpoint: EndpointFlags = group(EndpointFlags(), _MISC)
    kubelet: KubeletFlags = group(KubeletFlags(), _MISC, programs=CORE)
    leader_election: LeaderElectionFlags = group(
        LeaderElectionFlags(), "Leader election flags", programs=frozenset({"core", "auth", "up"})
    )
    signing: SigningFlags = group(SigningFlags(), "Csrsigning controller flags", programs=CORE)
    data_dir: Path = flag(
        "data-dir",
        Path("data"),
        "The directory of certificates, the kubeconfig and the SQLite database.",
        section=_TETRAPOD,
    )
    tetrapod: TetrapodFlags = group(TetrapodFlags(), _TETRAPOD)
    redis: RedisFlags = group(RedisFlags(), _TETRAPOD, programs=SEPARATE)
    peers: PeerFlags = group(PeerFlags(), _TETRAPOD)
    metrics: MetricsFlags = group(MetricsFlags(), "Metrics flags")
    logging: LoggingFlags = group(LoggingFlags(), "Logs flags")
    verbosity: int = flag("v", 1, "Number for the log level verbosity.", section="Global flags")
    ignored: tuple[str, ...] = field(default=(), repr=False)
    given: frozenset[str] = field(default=frozenset(), repr=False)
    shutdown_grace: float = 10.0
    worker: Worker | None = field(default=None, repr=False)
    listener: socket.socket | None = field(default=None, repr=False)

    @property
    def first_worker(self) -> bool:
        """Whether this is the only process of the server, or the first of its workers."""
        return self.worker is None or self.worker.first

    def share(self, limit: int) -> int:
        """Return the part of a limit of the whole server that applies to this process; 0 means no limit.

        For the only process it is the whole limit. For one of several workers it is at least 1.
        """
        return limit if self.worker is None else self.worker.share(limit)

    def with_flags(self, values: Mapping[str, object]) -> Options:
        """Return options in which some flags have other values, given by flag name.

        Raises:
            KeyError: a flag does not exist.
        """
        if unknown := values.keys() - {declared.name for declared, _ in declared_flags(self)}:
            raise KeyError(*unknown)
        return with_values(self, values)

    def flags(self) -> dict[str, str]:
        """Return the values of all flags as texts by flag name, for `/flagz` and the log."""
        return {declared.name: format_value(declared, value) for declared, value in declared_flags(self)}

    @property
    def local_address(self) -> str:
        """The IP address at which clients on this host reach the server. The administrator's kubeconfig contains it."""
        bind_address = self.serving.bind_address
        return self.serving.advertise_address or ("127.0.0.1" if bind_address in UNSPECIFIED else bind_address)

    @property
    def pki(self) -> Path:
        """The path of the directory of certificates and keys."""
        return self.data_dir / KEYS

    @property
    def database(self) -> Path:
        """The path of the SQLite database."""
        return self.data_dir / DATABASE
