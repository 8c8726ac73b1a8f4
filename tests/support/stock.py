"""Upstream's components as child processes, configured by a kubeconfig and keys only."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.server import end, free_port, without_cluster

BUILDER = Path(__file__).parents[2] / "tools/stock.sh"
NAMES = ("kube-controller-manager", "kube-scheduler", "sample-apiserver", "kube-apiserver")
_ERROR = re.compile(r"^[EF]\d{4} ")
_KNOWN_ERRORS = re.compile(
    r"The manifest file is empty, ignoring"
    # Caused by a test: no metrics, a missing storage class, no node that fits, claims that are created after their pod.
    r"|failed to compute desired number of replicas|storageclass.* not found|Status after running PostFilter plugins"
    # A controller read its own write too late, or wrote too early.
    r"|is not as new as written version|the object has been modified|may specify no more than one CIDR"
    # A namespace is deleted while they work in it.
    r"|because it is being terminated|unexpected items still remain in namespace"
)
"""Matches messages that these components also log as errors in the same session against upstream's kube-apiserver."""


@dataclass(frozen=True)
class Keys:
    """The key for service account tokens, the client CA with its key, and the root CA that the components publish."""

    service_accounts: Path
    client_ca: Path
    client_ca_key: Path
    root_ca: Path


@dataclass(frozen=True)
class Component:
    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def unexpected_errors(self) -> list[str]:
        """Return the logged errors that do not also occur against upstream's kube-apiserver."""
        lines = self.log.read_text().splitlines()
        return [line for line in lines if _ERROR.match(line) and not _KNOWN_ERRORS.search(line)]


def binaries() -> dict[str, Path]:
    """Return the paths of the binaries by name.

    Skip the test if tools/stock.sh has not built them: the build takes minutes.
    """
    directory = subprocess.run([BUILDER, "--where"], capture_output=True, text=True, check=True).stdout.strip()
    found = {name: Path(directory) / name for name in NAMES}
    if not all(path.exists() for path in found.values()):
        pytest.skip("the stock components are not built; make e2e-stock builds them")
    return found


@contextmanager
def stock_components(directory: Path, kubeconfig: Path, keys: Keys) -> Iterator[list[Component]]:
    found = binaries()
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(_running(found[NAMES[0]], directory, kubeconfig, *_manager_flags(keys))),
            stack.enter_context(_running(found[NAMES[1]], directory, kubeconfig)),
        ]


@contextmanager
def controller_manager(directory: Path, kubeconfig: Path, *flags: str) -> Iterator[Component]:
    """Run upstream's controller manager with flags of the test only."""
    with _running(binaries()[NAMES[0]], directory, kubeconfig, *flags) as component:
        yield component


@contextmanager
def scheduler(directory: Path, kubeconfig: Path, *flags: str) -> Iterator[Component]:
    """Run upstream's scheduler."""
    with _running(binaries()[NAMES[1]], directory, kubeconfig, *flags) as component:
        yield component


@contextmanager
def sample_apiserver(directory: Path, kubeconfig: Path, etcd: str) -> Iterator[tuple[Component, int]]:
    """Run upstream's example of an aggregated API server, which trusts only the front proxy.

    Yield it and its port, on all addresses.
    """
    port = free_port()
    flags = (f"--etcd-servers={etcd}", f"--secure-port={port}", "--bind-address=0.0.0.0")
    with _running(binaries()[NAMES[2]], directory, kubeconfig, *flags) as component:
        yield component, port


def _manager_flags(keys: Keys) -> list[str]:
    return [
        "--controllers=*,bootstrap-signer-controller,token-cleaner-controller",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={keys.service_accounts}",
        f"--root-ca-file={keys.root_ca}",
        f"--cluster-signing-cert-file={keys.client_ca}",
        f"--cluster-signing-key-file={keys.client_ca_key}",
        "--allocate-node-cidrs",
        "--cluster-cidr=10.244.0.0/16",
        "--service-cluster-ip-range=10.0.0.0/24",
        # Report a failed node within seconds, so that a test can observe it.
        "--node-monitor-grace-period=6s",
        "--node-monitor-period=1s",
    ]


@contextmanager
def _running(binary: Path, directory: Path, kubeconfig: Path, *flags: str) -> Iterator[Component]:
    log = directory / f"{binary.name}.log"
    argv = [str(binary), *(f"--{name}kubeconfig={kubeconfig}" for name in ("", "authentication-", "authorization-"))]
    argv += [
        f"--secure-port={free_port()}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={directory / f'{binary.name}-certs'}",
        "-v=2",
        *flags,
    ]
    with log.open("wb") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=out, env=without_cluster())
    try:
        yield Component(binary.name, process, log)
    finally:
        end(process)
