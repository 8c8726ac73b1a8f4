"""The programs of a cluster: their processes, their restarts, and their resources."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.processes import resident
from cluster import network
from cluster.processes import Processes
from cluster.settings import NODES, Node
from support.https_client import HttpsClient
from support.waiting import until

_OF_NODES: Final = ("containerd", "kubelet", "kube-proxy")
_NOT_RESTARTED: Final = {network.SWITCH, *(node.name for node in NODES)}


@dataclass(frozen=True)
class Sample:
    """The memory and other resources of a program, `seconds` after the beginning of the run.

    Attributes:
        memory: resident bytes.
        files: open file descriptors.
        threads: threads, or goroutines of a program that reports them through the API server.
    """

    seconds: float
    memory: int
    files: int
    threads: int


@dataclass(frozen=True)
class Program:
    """A program of the cluster: one beside the nodes, which `Processes` started, or one of a node."""

    name: str
    processes: Processes
    node: Node | None = None

    @property
    def label(self) -> str:
        return f"{self.name} of {self.node.name}" if self.node else self.name

    def pid(self) -> int | None:
        """Return the ID of its process, or None if it does not run."""
        if self.node is None:
            return self.processes.pid(self.name)
        outer = self.processes.pid(self.node.name)
        first = next(_children(outer), None) if outer is not None else None  # unshare's only child
        children = _children(first) if first is not None else ()
        return next((pid for pid in children if _command(pid) == self.name), None)

    def restart(self, number: signal.Signals) -> None:
        """End it by a signal, and wait until it runs again. A node starts its programs again itself.

        Raises:
            AssertionError: it does not run again within a minute.
        """
        if self.node is None:
            self.processes.restart(self.name, number)
            return
        before = self.pid()
        if before is not None:
            os.kill(before, number)
        until(self.pid, lambda now: now not in (None, before), description=f"the restart of {self.label}")

    def sample(self, client: HttpsClient, began: float) -> Sample | None:
        """Return its resources, or None if it does not run or cannot be asked at the moment."""
        pid = self.pid()
        if pid is None:
            return None
        with suppress(OSError):
            files, threads = (len(os.listdir(f"/proc/{pid}/{kind}")) for kind in ("fd", "task"))
            if self.node is not None and self.name == "kubelet":
                threads = _goroutines(client, self.node)
            return Sample(time.monotonic() - began, resident(pid), files, threads)
        return None


def programs_of(processes: Processes) -> list[Program]:
    """Return the programs of a cluster that runs."""
    outer = [Program(name, processes) for name in processes.names() if name not in _NOT_RESTARTED]
    return outer + [Program(name, processes, node) for node in NODES for name in _OF_NODES]


def _children(pid: int) -> Iterator[int]:
    yield from (int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def _goroutines(client: HttpsClient, node: Node) -> int:
    reply = client.call("GET", f"/api/v1/nodes/{node.name}/proxy/metrics")
    found = re.search(r"^go_goroutines (\d+)$", str(reply.body), re.MULTILINE)
    if found is None:
        raise OSError(f"{node.name} has no metrics: {reply.status}")
    return int(found[1])
