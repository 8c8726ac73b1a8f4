"""The first process of a node: it prepares the node's mounts, runs its programs, and reaps processes.

It restarts a program that ends, as systemd does on other nodes: a kubelet ends if containerd is not quite ready.

It runs in namespaces of its own (`unshare`), and needs only the standard library. If it ends, the kernel kills every
process of the node, containers included, and with them go the mounts and the network.

Args: the path of a JSON file with the plan that `nodes.py` writes.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MOUNTED = "/run/tetrapod"
RESTART_DELAY = 0.2  # seconds
_SETTINGS = {
    "net/ipv4/ip_forward": "1",
    "net/bridge/bridge-nf-call-iptables": "1",
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/default/rp_filter": "0",
}


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def prepare(plan: dict[str, Any]) -> None:
    """Give the node its own /proc, /sys, /run, /tmp and /var.

    Other directories are those of the machine. The directories of the plan are below /run/tetrapod.
    """
    directory = Path(plan["directory"])
    for name in ("run", "tmp", "var/log", "var/tmp", "var/lib/containerd", "var/lib/kubelet/manifests"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    (directory / "tmp").chmod(0o1777)
    (directory / "var/run").symlink_to("/run")
    run = directory / "run"
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(run))
    for name, source in plan["mounts"].items():
        (run / "tetrapod" / name).mkdir(parents=True)
        mount("--bind", source, str(run / "tetrapod" / name))
    (run / "cgroup").mkdir()
    mount("--rbind", "/sys/fs/cgroup", str(run / "cgroup"))
    mount("--bind", plan["containerd"], str(directory / "var/lib/containerd"))
    mount("--rbind", str(directory / "var"), "/var")
    mount("--bind", str(directory / "tmp"), "/tmp")
    mount("--rbind", str(run), "/run")
    mount("-t", "proc", "proc", "/proc")
    subprocess.run(["umount", "--lazy", "/sys"], check=True)  # it shows the machine's network
    mount("-t", "sysfs", "sysfs", "/sys")
    mount("--rbind", "/run/cgroup", "/sys/fs/cgroup")
    mount("--make-rshared", "/")  # volumes of containers can pass mounts on to the node
    socket.sethostname(plan["name"])
    for name, value in _SETTINGS.items():
        Path("/proc/sys", name).write_text(value)


def start(program: dict[str, Any]) -> subprocess.Popen[bytes]:
    """Start a program of the plan."""
    path = f"{MOUNTED}/programs:{os.environ['PATH']}:/usr/sbin:/sbin"
    with Path(MOUNTED, "logs", f"{program['name']}.log").open("ab") as out:
        return subprocess.Popen(
            program["argv"], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={**os.environ, "PATH": path}
        )


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.02)


def main() -> None:
    """Start the programs in their order, each when the file of the one before exists, and keep them running."""
    plan = json.loads(Path(sys.argv[1]).read_text())
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    prepare(plan)
    wait_for(Path(plan["network"]))
    # Python waits itself for processes whose objects are gone, so that `os.wait` would miss them: they are kept.
    running = {}
    for program in plan["programs"]:
        process = start(program)
        running[process.pid] = program, process
        if program["ready"]:
            wait_for(Path(program["ready"]))
    while True:
        ended, _ = os.wait()  # orphans of the node are children of this process too
        if ended in running:
            time.sleep(RESTART_DELAY)
            program, _ = running.pop(ended)
            process = start(program)
            running[process.pid] = program, process


if __name__ == "__main__":
    main()
