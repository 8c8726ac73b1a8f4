"""The cluster's API server: Tetrapod in one process over SQLite or in four services over etcd, or kube-apiserver.

Tetrapod's own controllers are off, because a stock controller manager runs them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from typing import Final, Protocol

from cluster.credentials import SERVER, Credentials
from cluster.processes import Processes
from cluster.settings import FIRST_SERVICE, HOST, PORT, SERVICES, Paths
from support import kube_apiserver
from support.etcd import etcd_36
from support.server import command, environment, wait_ready
from support.services import NAMES, SPEAKS_TO
from tetrapod.generic.certificates.pki import Pki, write_pki

_NO_CONTROLLERS: Final = "--controllers=-*"
_RANGE: Final = f"--service-cluster-ip-range={SERVICES}"
_BIND: Final = f"--bind-address={HOST}"
_PLUGINS: Final = "--enable-admission-plugins=NodeRestriction"
_ETCD: Final = f"https://{HOST}:2379"
_PORTS: Final = {"aggregator": PORT, "core": PORT + 1, "extensions": PORT + 2, "auth": PORT + 3}


class ApiServer(Protocol):
    """A form of the API server."""

    def prepare(self) -> Pki:
        """Create the certificates, and return the CAs with their keys."""

    def start(self, credentials: Credentials) -> None:
        """Start the processes, wait until they are ready, and write the administrator's kubeconfig."""


def api_server(form: str, paths: Paths, processes: Processes) -> ApiServer:
    """Return the API server in one of `FORMS`."""
    forms: dict[str, Callable[[Paths, Processes], ApiServer]] = {
        "one": OneProcess,
        "four": FourServices,
        "stock": KubeApiserver,
    }
    return forms[form](paths, processes)


def _kubelet_flags(credentials: Credentials) -> list[str]:
    certificate, key = credentials.kubelet_client()
    return [
        f"--kubelet-client-certificate={certificate}",
        f"--kubelet-client-key={key}",
        f"--kubelet-certificate-authority={credentials.pki.ca}",
        "--kubelet-preferred-address-types=InternalIP,Hostname",
    ]


class OneProcess:
    """`tetrapod up` over SQLite."""

    def __init__(self, paths: Paths, processes: Processes) -> None:
        self._paths = paths
        self._processes = processes
        self._data = paths.state / "data"

    def prepare(self) -> Pki:
        return write_pki(self._data / "pki", [HOST])

    def start(self, credentials: Credentials) -> None:
        argv = command("up", f"--data-dir={self._data}", _BIND, f"--secure-port={PORT}", f"--advertise-address={HOST}")
        argv += [_RANGE, _NO_CONTROLLERS, _PLUGINS, "--enable-bootstrap-token-auth", *_kubelet_flags(credentials)]
        self._processes.start("tetrapod", argv, environment())
        wait_ready(SERVER, None, self._processes.log("tetrapod"))
        shutil.copy(self._data / "kubeconfig", self._paths.kubeconfig)


class FourServices:
    """`tetrapod serve` four times, over one etcd member with TLS."""

    def __init__(self, paths: Paths, processes: Processes) -> None:
        self._paths = paths
        self._processes = processes
        self._certs = paths.state / "certs"

    def prepare(self) -> Pki:
        hosts = f"localhost,127.0.0.1,{HOST},kubernetes.default.svc,{FIRST_SERVICE}"
        argv = command("certs", f"--out={self._certs}", f"--hosts={hosts}", f"--server={SERVER}")
        argv += [f"--service-hosts={HOST}", f"--etcd-hosts={HOST}"]
        subprocess.run(argv, check=True, env=environment(), stdout=subprocess.DEVNULL)
        return Pki(self._certs / "ca")

    def start(self, credentials: Credentials) -> None:
        self._start_etcd()
        for name in NAMES:
            self._processes.start(name, self._command(name, credentials), environment())
        for name, port in _PORTS.items():
            wait_ready(f"https://{HOST}:{port}", None, self._processes.log(name))
        shutil.copy(self._certs / "admin" / "kubeconfig", self._paths.kubeconfig)

    def _command(self, name: str, credentials: Credentials) -> list[str]:
        own = self._certs / name
        argv = command("serve", name, f"--data-dir={own}", _BIND, f"--secure-port={_PORTS[name]}", _PLUGINS)
        argv += [f"--{other}-url=https://{HOST}:{_PORTS[other]}" for other in SPEAKS_TO[name]]
        argv += [f"--etcd-servers={_ETCD}", f"--etcd-cafile={own}/etcd-ca.crt"]
        argv += [f"--etcd-certfile={own}/etcd-client.crt", f"--etcd-keyfile={own}/etcd-client.key"]
        if name == "aggregator":
            argv += [f"--advertise-address={HOST}"]
        if name == "core":
            argv += [f"--advertise-address={HOST}", _RANGE, _NO_CONTROLLERS, *_kubelet_flags(credentials)]
        if name == "auth":
            argv += [_NO_CONTROLLERS, "--enable-bootstrap-token-auth"]
        if name != "auth":
            argv += ["--requestheader-allowed-names=front-proxy-client"]
        return argv

    def _start_etcd(self) -> None:
        certs, peer = self._certs / "etcd", f"https://{HOST}:2380"
        argv = [etcd_36(), "--name=etcd", f"--data-dir={self._paths.state / 'etcd'}", "--log-level=warn"]
        argv += [f"--listen-client-urls={_ETCD}", f"--advertise-client-urls={_ETCD}"]
        argv += [
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=etcd={peer}",
        ]
        for kind, file in (("", "tls"), ("peer-", "peer")):
            argv += [f"--{kind}client-cert-auth", f"--{kind}trusted-ca-file={certs}/ca.crt"]
            argv += [f"--{kind}cert-file={certs}/{file}.crt", f"--{kind}key-file={certs}/{file}.key"]
        self._processes.start("etcd", argv, dict(os.environ))


class KubeApiserver:
    """kube-apiserver over one etcd member."""

    def __init__(self, paths: Paths, processes: Processes) -> None:
        self._paths = paths
        self._processes = processes
        self._pki = paths.state / "pki"

    def prepare(self) -> Pki:
        return write_pki(self._pki, ["localhost", HOST, FIRST_SERVICE, "kubernetes.default.svc"])

    def start(self, credentials: Credentials) -> None:
        state, etcd = self._paths.state, f"http://{HOST}:2379"
        argv = [etcd_36(), f"--data-dir={state / 'etcd'}", "--log-level=warn"]
        argv += [f"--listen-client-urls={etcd}", f"--advertise-client-urls={etcd}"]
        self._processes.start("etcd", [*argv, f"--listen-peer-urls=http://{HOST}:2380"], dict(os.environ))
        (state / "tokens.csv").touch()
        program = self._paths.stock_programs / "kube-apiserver"
        argv = kube_apiserver.arguments(program, etcd, PORT, self._pki, state)
        argv += [_BIND, f"--advertise-address={HOST}", _RANGE, _PLUGINS, "--enable-bootstrap-token-auth"]
        argv += ["--allow-privileged", "--requestheader-allowed-names=front-proxy-client", *_kubelet_flags(credentials)]
        self._processes.start("kube-apiserver", argv, dict(os.environ))
        wait_ready(SERVER, None, self._processes.log("kube-apiserver"))
        credentials.kubeconfig("admin", "admin", "system:masters").rename(self._paths.kubeconfig)
