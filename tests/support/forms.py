"""The forms in which a test runs a server: Tetrapod over each store, and upstream's kube-apiserver as the reference."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from support import kube_apiserver, stock
from support.etcd import running_etcd
from support.https_client import HttpsClient
from support.server import running

SQLITE: Final = "sqlite"
ETCD: Final = "etcd"
STOCK: Final = "kube-apiserver"
FORMS: Final = (SQLITE, ETCD, STOCK)


class Store(Protocol):
    """An etcd with a URL."""

    @property
    def url(self) -> str: ...


@contextmanager
def serving(form: str, directory: Path, *flags: str) -> Iterator[HttpsClient]:
    """Run a server over a new store and yield a client of its administrator.

    Args:
        form: one of `FORMS`. The test is skipped for `STOCK` if upstream's binaries are not built.
        directory: the directory for its files.
        flags: further flags.
    """
    if form == SQLITE:
        with running(directory, *flags) as server:
            yield HttpsClient(server.kubeconfig)
        return
    with running_etcd(directory / "etcd") as etcd, serving_over(etcd, form, directory, *flags) as client:
        yield client


@contextmanager
def serving_over(etcd: Store, form: str, directory: Path, *flags: str) -> Iterator[HttpsClient]:
    """Run a server over an etcd and yield a client of its administrator.

    Args:
        etcd: the store, or a proxy in front of it.
        form: `ETCD` for Tetrapod or `STOCK`, for which the test is skipped if upstream's binaries are not built.
        directory: the directory for the files of the server.
        flags: further flags.
    """
    if form == ETCD:
        with running(directory, *flags, f"--etcd-servers={etcd.url}") as server:
            yield HttpsClient(server.kubeconfig)
        return
    binary = stock.binaries()["kube-apiserver"]
    with kube_apiserver.running_over(etcd.url, binary, directory, *flags) as reference:
        yield HttpsClient(_with_certificate(reference))


def feature_gates(gates: Iterable[str], *, enabled: bool) -> str:
    """Return the flag that enables or disables feature gates."""
    return f"--feature-gates={','.join(f'{gate}={str(enabled).lower()}' for gate in gates)}"


def _with_certificate(server: kube_apiserver.KubeApiserver) -> Path:
    """Write a kubeconfig with the administrator's client certificate, and return its path."""
    authority, certificate, key = (
        base64.b64encode(path.read_bytes()).decode()
        for path in (server.ca, server.pki.directory / "admin.crt", server.pki.directory / "admin.key")
    )
    config = {
        "clusters": [{"cluster": {"server": server.url, "certificate-authority-data": authority}}],
        "users": [{"user": {"client-certificate-data": certificate, "client-key-data": key}}],
    }
    path = server.kubeconfig.with_name("administrator.kubeconfig")
    path.write_text(json.dumps(config))
    return path
