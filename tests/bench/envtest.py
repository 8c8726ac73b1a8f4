"""`make bench-envtest`: measure a control plane of envtest for docs/how-to/testing.md.

With KUBE_APISERVER and ETCD, the stock control plane is measured in turn with Tetrapod's. The flags are those of
controller-runtime (pkg/internal/testing/controlplane).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.processes import cpu_of, resident
from support.etcd import etcd_36
from support.server import environment, free_port, wait_ready
from support.termination import exit_on_sigterm
from tetrapod.generic.certificates.pki import write_pki

ROUNDS: Final = 3


@dataclass(frozen=True)
class Binaries:
    """The programs for TEST_ASSET_ETCD and TEST_ASSET_KUBE_APISERVER."""

    etcd: Sequence[str]
    apiserver: Sequence[str]


@dataclass(frozen=True)
class Cost:
    cpu: float
    etcd: int
    apiserver: int
    ending: float


def _ours(module: str) -> list[str]:
    return [sys.executable, "-c", f"from tetrapod.cli.{module} import main; main()"]


def planes() -> dict[str, Binaries]:
    found = {"here": Binaries(_ours("etcd_stand_in"), _ours("kube_apiserver"))}
    if stock := os.environ.get("KUBE_APISERVER"):
        found["stock envtest"] = Binaries([os.environ.get("ETCD") or etcd_36()], [stock])
    return found


def _given(flags: dict[str, object]) -> list[str]:
    return [f"--{name}={value}" for name, value in flags.items()]


def _start(argv: Sequence[str], log: Path, url: str, ready: str) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=out, env=environment())
    wait_ready(url, process, log, path=ready)
    return process


def measure(binaries: Binaries, directory: Path) -> Cost:
    """Start, use and stop one control plane."""
    pki = write_pki(directory / "pki", ["localhost", "127.0.0.1"]).directory
    etcd_url, port = f"http://127.0.0.1:{free_port()}", free_port()
    store = {
        "data-dir": directory / "etcd",
        "listen-client-urls": etcd_url,
        "advertise-client-urls": etcd_url,
        "listen-peer-urls": "http://localhost:0",
        "unsafe-no-fsync": "true",
    }
    flags = {
        "etcd-servers": etcd_url,
        "cert-dir": pki,
        "bind-address": "127.0.0.1",
        "secure-port": port,
        "authorization-mode": "RBAC",
        "client-ca-file": pki / "client-ca.crt",
        "service-account-issuer": f"https://127.0.0.1:{port}/",
        "service-account-key-file": pki / "sa.pub",
        "service-account-signing-key-file": pki / "sa.key",
        "disable-admission-plugins": "ServiceAccount",
        "service-cluster-ip-range": "10.0.0.0/24",
        "allow-privileged": "true",
    }
    processes = [_start([*binaries.etcd, *_given(store)], directory / "etcd.log", etcd_url, "/health")]
    try:
        server = [*binaries.apiserver, *_given(flags)]
        processes.append(_start(server, directory / "kube-apiserver.log", f"https://127.0.0.1:{port}", "/readyz"))
        pids = [process.pid for process in processes]
        cpu, (etcd, apiserver) = cpu_of(pids), map(resident, pids)
        begun = time.monotonic()
        for process in reversed(processes):
            process.terminate()
            process.wait(30)
        return Cost(cpu, etcd, apiserver, time.monotonic() - begun)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _span(values: Sequence[float]) -> str:
    low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    return f"{low} s" if low == high else f"{low} to {high} s"


def _megabytes(values: Sequence[int]) -> str:
    return f"{sorted(values)[len(values) // 2] / 1e6:.0f} MB"


def main() -> None:
    exit_on_sigterm()
    known = planes()
    costs: dict[str, list[Cost]] = {name: [] for name in known}
    for _ in range(ROUNDS):
        for name, binaries in known.items():
            with tempfile.TemporaryDirectory(prefix="bench-envtest-") as directory:
                costs[name].append(measure(binaries, Path(directory)))
    rows = {
        "CPU until it is ready": [_span([cost.cpu for cost in of]) for of in costs.values()],
        "memory when it is ready": [
            f"{_megabytes([cost.etcd for cost in of])} etcd + {_megabytes([cost.apiserver for cost in of])}"
            for of in costs.values()
        ],
        "from SIGTERM to the end": [_span([cost.ending for cost in of]) for of in costs.values()],
    }
    print("| | " + " | ".join(costs) + " |")
    print("|---" * (1 + len(costs)) + "|")
    for title, cells in rows.items():
        print(f"| {title} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
