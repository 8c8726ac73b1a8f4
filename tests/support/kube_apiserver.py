"""Upstream's own kube-apiserver over an etcd, where its binary is given: STOCK_BIN names the directory. Skips the test elsewhere."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.server import Server, free_port, wait_ready
from tetrapod.generic.certificates.pki import write_pki


def binary() -> Path:
    found = Path(os.environ.get("STOCK_BIN", ""), "kube-apiserver")
    if not os.environ.get("STOCK_BIN") or not found.exists():
        pytest.skip("no kube-apiserver is given: STOCK_BIN names the directory of upstream's binaries")
    return found


@contextmanager
def kube_apiserver(directory: Path, etcd: str, *flags: str) -> Iterator[Server]:
    """Ready; its objects are stored as JSON, as ours are."""
    pki = write_pki(directory / "pki", ["localhost", "127.0.0.1"])
    certificate, key = pki.serving
    port = free_port()
    argv = [
        str(binary()),
        f"--etcd-servers={etcd}",
        "--storage-media-type=application/json",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--tls-cert-file={certificate}",
        f"--tls-private-key-file={key}",
        f"--client-ca-file={pki.client_ca}",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki.service_account_public_key}",
        f"--service-account-signing-key-file={pki.service_account_key}",
        *flags,
    ]
    log = directory / "kube-apiserver.log"
    with log.open("ab") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=out)
    server = Server(process, f"https://127.0.0.1:{port}", directory, log)
    try:
        wait_ready(server.url, process, log, patience=90)
        yield server
    finally:
        process.send_signal(signal.SIGKILL)  # nothing of it is to be kept but what it has acknowledged
        process.wait()
