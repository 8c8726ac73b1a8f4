"""The traces of a cluster on the machine, which `make cluster-down` looks for."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from cluster import control_groups, network
from cluster.commands import run
from cluster.node_files import MOUNTED
from cluster.settings import Paths

KERNEL: Final = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
"""The settings of the machine's kernel that a kubelet changes."""


def save_kernel_settings(paths: Paths) -> None:
    """Record the settings of the kernel before the kubelets start."""
    settings = {name: Path("/proc/sys", name).read_text() for name in KERNEL}
    _settings(paths).write_text(json.dumps(settings, indent=1))


def restore_kernel_settings(paths: Paths) -> None:
    """Set the settings of the kernel to the recorded values."""
    with suppress(FileNotFoundError):
        for name, value in json.loads(_settings(paths).read_text()).items():
            Path("/proc/sys", name).write_text(value)


def _settings(paths: Paths) -> Path:
    return paths.state / "kernel-settings.json"


def leftovers(paths: Paths) -> list[str]:
    """Return a line for everything of a cluster that is still on the machine."""
    return [
        *(f"process {pid}: {command}" for pid, command in processes(paths)),
        *(f"mount {line}" for line in mounts(paths)),
        *(["interface of the machine"] if network.exists() else []),
        *(f"control group {path}" for path in control_groups.present()),
        *(f"rule of iptables: {line}" for line in rules()),
        *([f"directory {paths.state}"] if paths.state.exists() else []),
    ]


def processes(paths: Paths) -> Iterator[tuple[int, str]]:
    """Yield the id and the command line of each process with files in the directories of the cluster or of a node.

    Other tests run the same programs with files of their own.
    """
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit() or int(directory.name) == os.getpid():
            continue
        with suppress(OSError):
            command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            if any(f"{place}/" in command for place in (paths.state, MOUNTED)):
                yield int(directory.name), command


def mounts(paths: Paths) -> list[str]:
    """Return the mounts of the machine below the directories of the cluster."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    places = [line.split()[4] for line in lines]
    return [place for place in places if place.startswith((f"{paths.state}/", f"{paths.image_stores}/"))]


def rules() -> list[str]:
    """Return the machine's rules of kube-proxy, the kubelet and the CNI plugins."""
    lines = run("iptables-save").splitlines()
    return [line for line in lines if line.startswith((":KUBE-", ":CNI-", "-A KUBE-", "-A CNI-"))]
