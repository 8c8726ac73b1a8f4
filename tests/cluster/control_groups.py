"""The control groups above those of the nodes' pods, in either version of the kernel's interface."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from cluster.settings import CONTROL_GROUP
from support.waiting import until

_ROOT: Final = Path("/sys/fs/cgroup")
_CONTROLLERS: Final = ("cpuset", "cpu", "io", "memory", "hugetlb", "pids", "rdma", "misc")


def hierarchies() -> list[Path]:
    """Return the mount points of the control groups: one with version 2, and one for each controller with version 1."""
    if (_ROOT / "cgroup.controllers").exists():
        return [_ROOT]
    found = [path for path in sorted(_ROOT.iterdir()) if path.is_dir() and not path.is_symlink()]
    return [path for path in found if (path / "cgroup.procs").exists() and not (path / "cgroup.controllers").exists()]


def create(name: str) -> None:
    """Create a control group in each hierarchy, with all controllers that its parent has."""
    for hierarchy in hierarchies():
        directory = hierarchy
        for part in Path(name).parts:
            _delegate(directory)
            parent, directory = directory, directory / part
            directory.mkdir(exist_ok=True)
            for file in ("cpuset.cpus", "cpuset.mems"):  # with version 1 they are empty, and no process could run
                if not (directory / "cgroup.controllers").exists() and (directory / file).exists():
                    (directory / file).write_text((parent / file).read_text())
        _delegate(directory)


def _delegate(directory: Path) -> None:
    """Let the children of a control group have its controllers, which version 2 does not by default."""
    available = directory / "cgroup.controllers"
    if available.exists():
        enabled = [f"+{name}" for name in available.read_text().split() if name in _CONTROLLERS]
        (directory / "cgroup.subtree_control").write_text(" ".join(enabled))


def present() -> Iterator[Path]:
    """Yield the directories of the cluster's control groups."""
    for hierarchy in hierarchies():
        if (hierarchy / CONTROL_GROUP).exists():
            yield hierarchy / CONTROL_GROUP


def remove() -> None:
    """Remove the control groups of the cluster, whose processes have been killed."""
    until(_removed, timeout=20, description="the removal of the control groups")


def _removed() -> bool:
    for top in present():
        for directory, _, _ in os.walk(top, topdown=False):
            with suppress(OSError):  # a process in it has not quite ended
                os.rmdir(directory)
    return not any(present())
