"""Copy images of Docker to the nodes, as `kind load docker-image` does."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cluster.commands import run
from cluster.node_files import MOUNTED, SOCKET
from cluster.processes import Processes
from cluster.settings import NODES, Paths

_LIMIT: Final = 300


def load(paths: Paths, images: Sequence[str]) -> None:
    """Copy images to every node of the cluster.

    Args:
        paths: the directories of the cluster.
        images: their names in Docker. Pods use the same names.

    Raises:
        CommandError: Docker has no image of that name.
    """
    processes = Processes(paths.processes, paths.logs)
    with tempfile.TemporaryDirectory() as directory:
        archive = Path(directory) / "images.tar"
        run("docker", "save", f"--output={archive}", *images, timeout=_LIMIT)
        for node in NODES:
            pid = processes.pid(node.name)
            assert pid is not None, f"{node.name} does not run"
            enter = ("nsenter", f"--target={pid}", "--mount")
            control = (f"{MOUNTED}/programs/ctr", f"--address={SOCKET}", "--namespace=k8s.io")
            # The shell opens the archive, which the node does not see.
            run("sh", "-c", 'exec "$@" < "$0"', archive, *enter, *control, "images", "import", "-", timeout=_LIMIT)
