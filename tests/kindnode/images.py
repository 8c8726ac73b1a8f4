"""The images that a node of kind has: those of kubeadm's control plane, of the pods' network, and of volumes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cluster.archives import Contents, Image, Layer
from cluster.commands import run
from cluster.images import BUSYBOX, PROVISIONER
from cluster.settings import VERSION

SANDBOX: Final = "registry.k8s.io/pause:3.10"
"""The image of pods that kind's configuration of containerd names."""
NETWORK: Final = "docker.io/cloudnativelabs/kube-router:v2.1.0"
SHARED: Final = ("kube-proxy", "pause", "local-path-provisioner", "busybox.tar")
"""The files of images that `make cluster` has too."""
_CONTROL_PLANE: Final = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")


def images(programs: Path) -> list[Image]:
    """Return the images, with the names that kubeadm and kind give them.

    Args:
        programs: the directory that `tools/cluster.sh kind` prints.
    """
    kind = programs / "kind"
    names = _names(kind / "kubeadm")
    network = kind / "network.tar"
    return [
        *(Image((names[name],), (_program(kind / name),)) for name in _CONTROL_PLANE),
        Image((names["kube-proxy"],), (network, _program(programs / "kube-proxy"))),
        Image((names["coredns"],), (_program(kind / "coredns", "coredns"),), {"Entrypoint": ["/coredns"]}),
        Image((SANDBOX, names["pause"]), (_program(programs / "pause", "pause"),), {"Entrypoint": ["/pause"]}),
        Image((NETWORK,), (network, _program(kind / "kube-router")), {"Entrypoint": ["kube-router"]}),
        Image((PROVISIONER,), (_program(programs / "local-path-provisioner", "local-path-provisioner"),)),
        Image((BUSYBOX,), (programs / "busybox.tar",), {"Cmd": ["sh"]}),
    ]


def _names(kubeadm: Path) -> dict[str, str]:
    """Return the names of the control plane's images by their last part."""
    listed = run(kubeadm, "config", "images", "list", f"--kubernetes-version=v{VERSION}").split()
    return {name.split(":")[0].split("/")[-1]: name for name in listed}


def _program(source: Path, path: str = "") -> Contents:
    """Return a layer with one program, in a directory of PATH unless there is another path."""

    def fill(layer: Layer) -> None:
        layer.file(path or f"usr/local/bin/{source.name}", source)

    return fill
