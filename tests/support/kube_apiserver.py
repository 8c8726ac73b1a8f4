"""Upstream's kube-apiserver as a child process over its own etcd: for aggregating Tetrapod's servers, and for
comparison with them.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.etcd import running_etcd
from support.server import end, free_port, wait_ready, without_cluster
from tetrapod.generic.certificates.pki import Pki, write_pki

TOKEN = "admin-token"
TOKENS = f'{TOKEN},admin,admin,"system:masters"\nbob-token,bob,bob,"readers"\n'


@dataclass(frozen=True)
class KubeApiserver:
    url: str
    pki: Pki
    kubeconfig: Path
    pid: int = 0

    @property
    def ca(self) -> Path:
        return self.pki.ca


def arguments(binary: str | Path, etcd: str, port: int, pki: Path, directory: Path) -> list[str]:
    """Return the command line.

    Args:
        pki: the directory that `write_pki` has written.
        directory: the directory that contains tokens.csv.
    """
    flags = {
        "etcd-servers": etcd,
        "bind-address": "127.0.0.1",
        "secure-port": port,
        "cert-dir": directory / "run",
        "tls-cert-file": pki / "apiserver.crt",
        "tls-private-key-file": pki / "apiserver.key",
        "client-ca-file": pki / "client-ca.crt",
        "token-auth-file": directory / "tokens.csv",
        "authorization-mode": "Node,RBAC",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-signing-key-file": pki / "sa.key",
        "service-account-key-file": pki / "sa.pub",
        "service-cluster-ip-range": "10.0.0.0/24",
        "requestheader-client-ca-file": pki / "front-proxy-ca.crt",
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "proxy-client-cert-file": pki / "front-proxy-client.crt",
        "proxy-client-key-file": pki / "front-proxy-client.key",
    }
    return [str(binary), *(f"--{name}={value}" for name, value in flags.items())]


@contextmanager
def running(binary: Path, directory: Path, tokens: str = TOKENS, *flags: str) -> Iterator[KubeApiserver]:
    """Run a kube-apiserver over a new etcd.

    Args:
        binary: the program.
        directory: a directory for its files.
        tokens: the content of its token file.
        flags: further flags, which override the defaults.
    """
    with (
        running_etcd(directory / "etcd") as etcd,
        running_over(etcd.url, binary, directory, *flags, tokens=tokens) as server,
    ):
        yield server


@contextmanager
def running_over(
    etcd: str, binary: Path, directory: Path, *flags: str, pki: Pki | None = None, tokens: str = TOKENS
) -> Iterator[KubeApiserver]:
    """Run a kube-apiserver over an existing etcd and yield it when it is ready.

    `flags` come last, so that they override the defaults.
    """
    directory.mkdir(exist_ok=True)
    pki = pki or write_pki(directory / "pki", ["localhost", "127.0.0.1"])
    (directory / "tokens.csv").write_text(tokens)
    port, log = free_port(), directory / "kube-apiserver.log"
    with log.open("ab") as out:
        argv = [*arguments(binary, etcd, port, pki.directory, directory), *flags]
        process = subprocess.Popen(argv, stdout=out, stderr=out, env=without_cluster())
    try:
        server = KubeApiserver(f"https://localhost:{port}", pki, directory / "kubeconfig", process.pid)
        server.kubeconfig.write_text(_kubeconfig(server))
        wait_ready(server.url, process, log, timeout=90)
        yield server
    finally:
        end(process)


def _kubeconfig(server: KubeApiserver) -> str:
    authority = base64.b64encode(server.ca.read_bytes()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server.url, "certificate-authority-data": authority}}],
        "users": [{"name": "admin", "user": {"token": TOKEN}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "admin"}}],
        "current-context": "c",
    }
    return json.dumps(config)
