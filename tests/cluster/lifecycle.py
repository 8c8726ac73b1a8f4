"""Start and end a cluster."""

from __future__ import annotations

import shutil
import signal
from typing import Final

from cluster import addons, control_groups, leftovers, network, nodes
from cluster.api_server import api_server
from cluster.commands import run, succeeds
from cluster.components import start_components
from cluster.credentials import Credentials
from cluster.image_store import ImageSet, image_store
from cluster.processes import Processes
from cluster.registry import start_registry
from cluster.settings import FORMS, NODES, ROOT, Paths
from cluster.steps import step
from support.https_client import HttpsClient
from support.waiting import until

_BUILD_LIMIT: Final = 3600


class ClusterError(Exception):
    """The cluster cannot be started, or has not ended completely."""


def build(paths: Paths, *, conformance: bool = False) -> None:
    """Install packages and build programs that are missing, with those of the conformance suite if asked."""
    with step("Packages and programs"):
        run(ROOT / "tools/prepare.sh", "cluster", timeout=_BUILD_LIMIT)
        run(ROOT / "tools/stock.sh", timeout=_BUILD_LIMIT)
        run(ROOT / "tools/cluster.sh", *(["conformance"] if conformance else []), timeout=_BUILD_LIMIT)
        run(ROOT / "tools/cluster_trees.sh", paths.programs, timeout=_BUILD_LIMIT)
    # Some systems load these parts of the kernel on demand only. They fail where the kernel has them built in.
    for module in ("br_netfilter", "overlay"):
        succeeds("modprobe", module)


def check_absent(paths: Paths) -> None:
    """Check that the machine has no cluster.

    Raises:
        ClusterError: it has one.
    """
    if network.exists() or paths.state.exists():
        raise ClusterError("the machine has a cluster, or what is left of one; make cluster-down removes it")


def up(paths: Paths, form: str, images: ImageSet, proxy: str = "stock") -> HttpsClient:
    """Start a cluster, and return a client of its administrator.

    Args:
        paths: its directories.
        form: one of `FORMS`.
        images: the images that its nodes have.
        proxy: one of `PROXIES`.

    Raises:
        ClusterError: the machine has one already.
    """
    check_absent(paths)
    with step("Images"):
        store = image_store(paths, images)
    paths.logs.mkdir(parents=True)
    (paths.state / "form").write_text(form)
    leftovers.save_kernel_settings(paths)
    processes = Processes(paths.processes, paths.logs)
    with step("Network"):
        _start_network(processes)
    server = api_server(form, paths, processes)
    credentials = Credentials(server.prepare(), paths.credentials)
    with step(f"API server ({FORMS[form]})"):
        server.start(credentials)
    client = HttpsClient(paths.kubeconfig)
    if images.in_registry:
        with step("Registry"):
            start_registry(paths, processes, store)
    with step("Controller manager, scheduler, and objects of add-ons"):
        start_components(paths, processes, credentials)
        addons.deploy(client)
    with step(f"Nodes ({', '.join(node.name for node in NODES)})"):
        for node in NODES:
            paths.node(node).mkdir()
            store.copy(paths.node(node) / "containerd")
        nodes.start_nodes(paths, processes, credentials, client, proxy)
        nodes.wait_until_ready(client)
    with step("CoreDNS"):
        addons.wait_for_dns(client)
    return client


def _start_network(processes: Processes) -> None:
    pid = processes.start(network.SWITCH, network.SWITCH_COMMAND)
    network.wait_for_namespace(pid)
    network.create_switch(pid)


def is_up(paths: Paths) -> str | None:
    """Return the form of the cluster that runs, or None."""
    processes = Processes(paths.processes, paths.logs)
    names = processes.names()
    if not names or any(processes.pid(name) is None for name in names) or not paths.kubeconfig.exists():
        return None
    return (paths.state / "form").read_text()


def down(paths: Paths) -> None:
    """End the cluster, also one that failed to start.

    Raises:
        ClusterError: something of it is left on the machine. The message says what.
    """
    processes = Processes(paths.processes, paths.logs)
    inner = [node.name for node in NODES] + [network.SWITCH]
    with step("Nodes"):
        # The kernel ends every process of a node with the first one.
        processes.stop(*(node.name for node in NODES), number=signal.SIGKILL)
        control_groups.remove()
    with step("Control plane"):
        outer = [name for name in processes.names() if name not in inner]
        processes.stop(*outer)
        network.disconnect()
        processes.stop(network.SWITCH, number=signal.SIGKILL)
    with step("Files"):
        # Programs of a node can still write files while the kernel ends them.
        until(lambda: list(leftovers.processes(paths)), lambda found: not found, description="the end of all programs")
        leftovers.restore_kernel_settings(paths)
        if paths.state.exists():
            shutil.rmtree(paths.state)
    left = leftovers.leftovers(paths)
    if left:
        raise ClusterError("\n".join(["this is left of the cluster:", *left]))
