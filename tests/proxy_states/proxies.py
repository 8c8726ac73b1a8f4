"""The two proxies, which run with the same configuration: kube-proxy and `tetrapod proxy`."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from cluster.settings import Paths
from proxy_states.namespaces import NODE
from proxy_states.world import NAME
from support.network_namespace import Namespace
from support.server import command, environment

TETRAPOD: Final = "tetrapod"
STOCK: Final = "stock"


@dataclass
class Proxy:
    """A proxy in a namespace.

    Attributes:
        kind: TETRAPOD or STOCK.
        namespace: where it runs.
        directory: the directory of its log.
        process: the process; None while it does not run.
    """

    kind: str
    namespace: Namespace
    directory: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self, configuration: Path) -> None:
        """Start it with a file of its settings."""
        program = command("proxy") if self.kind == TETRAPOD else [str(Paths.default().programs / "kube-proxy")]
        argv = [*program, f"--config={configuration}", "-v=4"]
        self.process = self.namespace.start(argv, self.log, environment())

    def stop(self) -> None:
        """End it. Its rules stay."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(20)
            self.process = None

    @property
    def log(self) -> Path:
        return self.directory / f"{self.kind}.log"

    def check(self) -> None:
        """Check that it runs."""
        assert self.process is None or self.process.poll() is None, f"{self.kind}: {self.log.read_text()[-4000:]}"


def settings(random: Random, kubeconfig: Path) -> dict[str, Any]:
    """Return random settings as a KubeProxyConfiguration."""
    local, pods = random.choice(
        (
            ("ClusterCIDR", {"clusterCIDR": "10.244.0.0/16,fd00:244::/56"}),
            ("ClusterCIDR", {"clusterCIDR": "10.244.0.0/16"}),
            ("ClusterCIDR", {}),
            ("NodeCIDR", {}),
            ("BridgeInterface", {"detectLocal": {"bridgeInterface": "cni0"}}),
            ("InterfaceNamePrefix", {"detectLocal": {"interfaceNamePrefix": "veth"}}),
        )
    )
    addresses = random.choice(
        (
            [],
            ["primary"],
            ["localhost"],
            ["all"],
            ["primary", "localhost"],
            ["10.10.0.0/16", "127.0.0.0/8"],
            ["fd00:10::/64"],
            ["192.0.2.0/24"],
        )
    )
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "hostnameOverride": NAME,
        "mode": "iptables",
        "bindAddress": random.choice(("0.0.0.0", "0.0.0.0", NODE[0], NODE[1])),
        "healthzBindAddress": "0.0.0.0:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "featureGates": {"AllowServiceExternalIPs": random.random() < 0.8},
        "detectLocalMode": local,
        **pods,
        "nodePortAddresses": addresses,
        "iptables": {
            "syncPeriod": random.choice(("1s", "30s")),
            "minSyncPeriod": random.choice(("10ms", "500ms")),
            "masqueradeAll": random.random() < 0.3,
            "masqueradeBit": random.choice((14, 14, 0, 31)),
            "localhostNodePorts": random.random() < 0.7,
        },
        # Only the first network namespace may change the limits of connection tracking.
        "conntrack": {
            "maxPerCore": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
            "tcpBeLiberal": random.random() < 0.2,
        },
    }


def write_settings(path: Path, content: dict[str, Any]) -> None:
    """Write settings into a file."""
    path.write_text(json.dumps(content, indent=1))
