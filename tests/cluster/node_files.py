"""The configuration of the programs on a node: containerd, the CNI plugins, kubelet and kube-proxy.

All paths are those that the programs see on the node (`node_init.py`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from cluster.settings import DNS, HOST, PODS, Node

MOUNTED: Final = "/run/tetrapod"
SOCKET: Final = "/run/containerd/containerd.sock"
PAUSE: Final = "registry.k8s.io/pause:3.10.2"
_REGISTRIES: Final = f"""[host."http://{HOST}:5000"]
capabilities = ["pull", "resolve"]
"""
"""Images of every registry come from the one of the cluster, if it has one (`registry.py`)."""
_CAP_SYS_RESOURCE: Final = 1 << 24

_CONTAINERD: Final = """version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri"]
[grpc]
address = "{socket}"
[plugins.'io.containerd.cri.v1.images']
snapshotter = "overlayfs"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{pause}"
[plugins.'io.containerd.cri.v1.images'.registry]
config_path = "{mounted}/node/registries"
[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = {restricted}
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["{mounted}/programs"]
conf_dir = "{mounted}/node/network"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
SystemdCgroup = false
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.test-handler]
runtime_type = "io.containerd.runc.v2"
"""
"""`test-handler` is the handler that upstream's suites expect for their RuntimeClass."""


def write_files(directory: Path, node: Node) -> None:
    """Write the files into the directory that the node sees as /run/tetrapod/node."""
    (directory / "network").mkdir(parents=True, exist_ok=True)
    (directory / "registries" / "_default").mkdir(parents=True, exist_ok=True)
    (directory / "registries" / "_default" / "hosts.toml").write_text(_REGISTRIES)
    (directory / "containerd.toml").write_text(containerd(restricted=not can_lower_oom_scores()))
    (directory / "network" / "10-bridge.conflist").write_text(json.dumps(network(node), indent=1))
    (directory / "kubelet.yaml").write_text(json.dumps(kubelet(node), indent=1))
    (directory / "kube-proxy.yaml").write_text(json.dumps(kube_proxy(node), indent=1))
    # Documentation address: nothing answers there. A cluster without a way out has no DNS of others.
    (directory / "resolv.conf").write_text("nameserver 192.0.2.254\n")


def can_lower_oom_scores() -> bool:
    """Return whether runc may lower a process' OOM score here, which containers of some machines may not."""
    status = Path("/proc/self/status").read_text()
    effective = next(line for line in status.splitlines() if line.startswith("CapEff:")).split()[1]
    return bool(int(effective, 16) & _CAP_SYS_RESOURCE)


def containerd(*, restricted: bool) -> str:
    """Return containerd's configuration."""
    return _CONTAINERD.format(socket=SOCKET, pause=PAUSE, mounted=MOUNTED, restricted=str(restricted).lower())


def network(node: Node) -> dict[str, Any]:
    """Return the configuration of the pods' network. Packets between nodes keep their addresses."""
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": node.pods}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, ports]}


def kubelet(node: Node) -> dict[str, Any]:
    """Return the kubelet's configuration."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{MOUNTED}/node/client-ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{MOUNTED}/node/kubelet.crt",
        "tlsPrivateKeyFile": f"{MOUNTED}/node/kubelet.key",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.control_group}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "clusterDNS": [DNS],
        "clusterDomain": "cluster.local",
        "resolvConf": f"{MOUNTED}/node/resolv.conf",
        "staticPodPath": "/var/lib/kubelet/manifests",
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        # Both nodes share the machine's disk, and images cannot be pulled again.
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageMinimumGCAge": "1000h",
        "imageGCHighThresholdPercent": 100,
    }


def kube_proxy(node: Node) -> dict[str, Any]:
    """Return kube-proxy's configuration."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": f"{MOUNTED}/node/kube-proxy.kubeconfig"},
        "hostnameOverride": node.name,
        "mode": "iptables",
        "clusterCIDR": PODS,
        "nodePortAddresses": ["primary"],
        "conntrack": {"maxPerCore": 0},  # all network namespaces of the machine share the limit
    }
