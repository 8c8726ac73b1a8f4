"""Start the nodes: their namespaces, programs and Node objects."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any, Final

from cluster import control_groups, network, node_files
from cluster.credentials import Credentials
from cluster.node_files import MOUNTED, SOCKET
from cluster.processes import Processes
from cluster.settings import NODES, ROOT, Node, Paths
from support.https_client import HttpsClient

_INIT: Final = Path(__file__).with_name("node_init.py")
_UNSHARE: Final = ("unshare", "--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child=KILL")


_PYTHON_MOUNTS: Final = {"python": sys.prefix, "services": str(ROOT / "services")}
"""Where `tetrapod proxy` finds Python and its modules, also if they are in a directory that the node has of its own."""


def start_nodes(paths: Paths, processes: Processes, credentials: Credentials, client: HttpsClient, proxy: str) -> None:
    """Start the programs of all nodes, which are connected to the network. `proxy` is one of `PROXIES`."""
    for node in NODES:
        created = client.call("POST", "/api/v1/nodes", node_object(node))
        assert created.status == 201, created
        _start(paths, processes, credentials, node, proxy)


def wait_until_ready(client: HttpsClient) -> None:
    """Wait until the kubelets have reported every node as ready."""
    for node in NODES:
        client.until(
            lambda reply: reply.status == 200 and ready(reply.body), "GET", f"/api/v1/nodes/{node.name}", timeout=90
        )


def ready(node: Any) -> bool:
    """Return whether a Node has the condition Ready."""
    conditions = node.get("status", {}).get("conditions") or ()
    return any((c["type"], c["status"]) == ("Ready", "True") for c in conditions)


def node_object(node: Node) -> dict[str, Any]:
    """Return the Node that the kubelet finds. Its pod CIDR is that of the node's CNI plugin."""
    return {"metadata": {"name": node.name}, "spec": {"podCIDR": node.pods, "podCIDRs": [node.pods]}}


def _start(paths: Paths, processes: Processes, credentials: Credentials, node: Node, proxy: str) -> None:
    directory = paths.node(node)
    files = directory / "files"
    node_files.write_files(files, node)
    _copy_credentials(files, credentials, node)
    control_groups.create(node.control_group)
    plan = directory / "plan.json"
    plan.write_text(json.dumps(plan_of(paths, node, proxy)))
    (paths.logs / node.name).mkdir(parents=True, exist_ok=True)
    pid = processes.start(node.name, [*_UNSHARE, sys.executable, str(_INIT), str(plan)])
    network.wait_for_namespace(pid)
    switch = processes.pid(network.SWITCH)
    assert switch is not None
    network.connect(node, pid, switch)
    (files / "connected").touch()


def _copy_credentials(files: Path, credentials: Credentials, node: Node) -> None:
    kubelet = credentials.kubeconfig(node.name, f"system:node:{node.name}", "system:nodes")
    proxy = credentials.kubeconfig(f"{node.name}-proxy", "system:kube-proxy", "system:node-proxier")
    certificate, key = credentials.kubelet_server(node)
    for source, name in (
        (kubelet, "kubelet.kubeconfig"),
        (proxy, "kube-proxy.kubeconfig"),
        (certificate, "kubelet.crt"),
        (key, "kubelet.key"),
        (credentials.pki.client_ca, "client-ca.crt"),
    ):
        shutil.copy(source, files / name)


def plan_of(paths: Paths, node: Node, proxy: str) -> dict[str, Any]:
    """Return the plan of `node_init.py`: its mounts, and its programs in their order.

    Args:
        paths: the directories of the cluster.
        node: the node.
        proxy: one of `PROXIES`.
    """
    files, programs = f"{MOUNTED}/node", f"{MOUNTED}/programs"
    kubelet = [f"--config={files}/kubelet.yaml", f"--kubeconfig={files}/kubelet.kubeconfig", "-v=2"]
    kubelet += [f"--hostname-override={node.name}", f"--node-ip={node.address}"]
    return {
        "name": node.name,
        "directory": str(paths.node(node)),
        "containerd": str(paths.node(node) / "containerd"),
        "mounts": {
            "programs": str(paths.programs),
            "node": str(paths.node(node) / "files"),
            "logs": str(paths.logs / node.name),
            **(_PYTHON_MOUNTS if proxy == "tetrapod" else {}),
        },
        "network": f"{files}/connected",
        "programs": [
            {
                "name": "containerd",
                "argv": [f"{programs}/containerd", f"--config={files}/containerd.toml"],
                "ready": SOCKET,
            },
            {"name": "kubelet", "argv": [f"{programs}/kubelet", *kubelet], "ready": ""},
            {
                "name": "kube-proxy",
                "argv": [*_proxy_program(proxy), f"--config={files}/kube-proxy.yaml", "-v=2"],
                "ready": "",
            },
        ],
    }


def _proxy_program(proxy: str) -> list[str]:
    if proxy == "stock":
        return [f"{MOUNTED}/programs/kube-proxy"]
    environment = f"PYTHONPATH={MOUNTED}/services"
    return ["env", environment, f"{MOUNTED}/python/bin/python", "-m", "tetrapod.cli.main", "proxy"]
