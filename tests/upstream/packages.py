"""The packages of upstream's integration suites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KUBERNETES: Final = "k8s.io/kubernetes"
EXTENSIONS: Final = "k8s.io/apiextensions-apiserver"
_WITHOUT_ETCD: Final = ("controllermanager",)
_LIMIT: Final = 900  # seconds
_LIMITS: Final = {
    "dra/all": 1800,
    "dra/ga": 1800,
    "job": 3600,
    "scheduler/filters": 1800,
    "scheduler/podgroup": 1800,
    "scheduler/preemption": 2700,
    "scheduler/queueing": 1800,
}
"""The packages that need more time, in seconds: about one and a half times what they took on a busy machine."""


@dataclass(frozen=True)
class Package:
    """One Go package of tests. `name` is short: `auth`, or `crd` for those of apiextensions-apiserver."""

    name: str

    @property
    def module(self) -> str:
        return EXTENSIONS if self.name.split("/")[0] == "crd" else KUBERNETES

    @property
    def directory(self) -> str:
        """The directory in the module. Tests run there, because they read files beside them."""
        name = self.name.removeprefix("crd").removeprefix("/") if self.module == EXTENSIONS else self.name
        return f"test/integration/{name}".rstrip("/")

    @property
    def import_path(self) -> str:
        return f"{self.module}/{self.directory}"

    @property
    def needs_etcd(self) -> bool:
        """Whether its tests start no etcd, and expect that one is running."""
        return self.module == EXTENSIONS or self.name in _WITHOUT_ETCD

    @property
    def limit(self) -> int:
        """The seconds for all its tests, unless `--time` gives others."""
        return _LIMITS.get(self.name, _LIMIT)

    @property
    def file(self) -> str:
        """The name of its files: the test program, the log, the record."""
        return self.name.replace("/", "_")


_NAMES: Final = """
apimachinery apimachinery/apply apiserver apiserver/admissionwebhook apiserver/anonymous apiserver/apidefinitions
apiserver/apply apiserver/cel apiserver/cel/authorizerselector/selectorenabled apiserver/certreload
apiserver/coordinatedleaderelection apiserver/discovery apiserver/egressselector apiserver/flowcontrol
apiserver/httpproxy apiserver/oidc apiserver/openapi apiserver/peerproxy apiserver/podlogs apiserver/portforward
apiserver/tracing auth certificates client client/metrics cloudprovider clustertrustbundles controllermanager
controlplane controlplane/audit controlplane/transformation crd crd/conversion cronjob daemonset
defaulttolerationseconds deployment disruption dra dra/all dra/api dra/default dra/ga dryrun dualstack endpoints
endpointslice etcd events evictions examples garbagecollector job kubelet metrics metrics/nativehistograms namespace
network node openshift podautoscaler podcertificaterequests podgc pods pvc quota replicaset replicationcontroller scale
scheduler scheduler/batch scheduler/bind scheduler/eventhandler scheduler/extender scheduler/filters
scheduler/nominated_node_name scheduler/plugins scheduler/podgroup scheduler/preemption scheduler/prequeueinghint
scheduler/queueing scheduler/scoring scheduler/serving scheduler/taint secrets service serviceaccount servicecidr
serving staleness statefulset storageclasses storageversion storageversionmigrator tls ttlcontroller volume
volumescheduling
"""
PACKAGES: Final = tuple(Package(name) for name in _NAMES.split())
"""All but the benchmarks (scheduler_perf, logs/benchmark, ipamperf) and tests that start no server
(logs/functional).
"""

SHORT: Final = ("dryrun", "namespace", "scale")
"""The packages of the short form, which CI runs: they reach many resources, and start few servers."""
