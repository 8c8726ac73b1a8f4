"""The certificates and kubeconfigs of the components, issued by the CAs of the API server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cluster.settings import HOST, PORT, Node
from tetrapod.generic.certificates.authority import Authority
from tetrapod.generic.certificates.kubeconfig import kubeconfig, write_kubeconfig
from tetrapod.generic.certificates.pki import PRIVATE, PUBLIC, Pki, write_file

SERVER = f"https://{HOST}:{PORT}"
KUBELET_CLIENT = "kubelet-client"
"""The name of the client certificate of the API server towards kubelets."""


@dataclass(frozen=True)
class Credentials:
    """Issues credentials into a directory.

    Args:
        pki: the CAs of the API server, with their keys.
        directory: the directory of the files.
    """

    pki: Pki
    directory: Path

    def kubeconfig(self, name: str, user: str, *groups: str) -> Path:
        """Write NAME.kubeconfig with a new client certificate of a user, and return its path."""
        certificate, key = self._authority("client-ca").issue_client(user, groups)
        path = self.directory / f"{name}.kubeconfig"
        config = kubeconfig(SERVER, ca=self.pki.ca.read_bytes(), certificate=certificate, key=key, user=name)
        write_kubeconfig(path, config)
        return path

    def kubelet_client(self) -> tuple[Path, Path]:
        """Write the client certificate that the API server presents to kubelets, and return the two paths."""
        pair = self._authority("client-ca").issue_client("kube-apiserver-kubelet-client", ("system:masters",))
        return self._write(KUBELET_CLIENT, pair)

    def kubelet_server(self, node: Node) -> tuple[Path, Path]:
        """Write the serving certificate of a kubelet, and return the two paths."""
        return self._write(
            f"{node.name}-server", self._authority("ca").issue_server(node.name, (node.name, node.address))
        )

    def _authority(self, name: str) -> Authority:
        return Authority.load(self.pki.certificate(name).read_bytes(), self.pki.key(name).read_bytes())

    def _write(self, name: str, pair: tuple[bytes, bytes]) -> tuple[Path, Path]:
        certificate, key = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        self.directory.mkdir(parents=True, exist_ok=True)
        write_file(certificate, pair[0], PUBLIC)
        write_file(key, pair[1], PRIVATE)
        return certificate, key
