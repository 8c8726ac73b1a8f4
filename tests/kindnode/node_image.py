"""Make a node image of kind where the published one cannot be pulled."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from cluster.archives import write_archive, write_images
from cluster.commands import run, succeeds
from cluster.image_store import containerd, digest
from cluster.images import BUSYBOX, PROVISIONER
from cluster.lifecycle import build as build_programs
from cluster.settings import ROOT, VERSION, Paths
from kindnode.images import NETWORK, SHARED, images
from support.compose import docker

REPOSITORY: Final = "tetrapod-kind-node"
_HERE: Final = Path(__file__).parent
_STORAGE: Final = ROOT / "tests/cluster/storage.yaml"
_LIMIT: Final = 3600
_PROGRAMS: Final = {
    "usr/local/bin": ("containerd", "containerd-shim-runc-v2", "ctr", "kind/crictl"),
    "usr/bin": ("kubelet", "kubectl", "kind/kubeadm"),
    "opt/cni/bin": ("bridge", "loopback", "host-local", "portmap"),
}
"""The programs of a node by their directory."""
_CNI: Final = {
    "cniVersion": "0.3.0",
    "name": "pods",
    "plugins": [
        {
            "name": "kubernetes",
            "type": "bridge",
            "bridge": "kube-bridge",
            "isDefaultGateway": True,
            "hairpinMode": True,
            "ipam": {"type": "host-local"},
        },
        {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True},
    ],
}
"""The configuration of the pods' network. kube-router writes the addresses of the node's pods into it."""


def node_image() -> str:
    """Return the name of the image in Docker, which the first call with these programs makes (minutes, 1 GB)."""
    paths = Paths.default()
    build_programs(paths)
    run(ROOT / "tools/cluster.sh", "kind", timeout=_LIMIT)
    run(ROOT / "tools/kind_trees.sh", paths.programs / "kind", timeout=_LIMIT)
    name = f"{REPOSITORY}:v{VERSION}-{digest(_inputs(paths.programs))}"
    if succeeds("docker", "image", "inspect", name):
        return name
    old = docker("image", "ls", "--quiet", REPOSITORY).split()
    with tempfile.TemporaryDirectory(dir=paths.cache, prefix="kind-image-") as directory:
        root = Path(directory) / "root"
        _write_system(root, paths.programs)
        _import_images(root, paths, Path(directory))
        _import_into_docker(root, name)
    if old:
        docker("image", "rm", "--force", *old)
    return name


def _inputs(programs: Path) -> list[Path]:
    """Return the files on which the image depends."""
    own = sorted(path for path in _HERE.iterdir() if path.is_file())
    names = [name for names in _PROGRAMS.values() for name in names]
    return [*own, _STORAGE, *(programs / name for name in [*names, *SHARED]), *sorted((programs / "kind").iterdir())]


def _write_system(root: Path, programs: Path) -> None:
    """Write the files of a node, except for its images."""
    root.mkdir(mode=0o755)
    run("tar", "--extract", "--numeric-owner", f"--file={programs / 'kind/packages.tar'}", f"--directory={root}")
    run("cp", "--recursive", "--no-preserve=all", f"{_files_of_kind()}/.", root)  # modules are read-only
    for directory, names in _PROGRAMS.items():
        target = root / directory
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            shutil.copy(programs / name, target)
    hook = {"path": "/kind/bin/mount-product-files.sh"}
    specification = json.loads(run(programs / "ctr", "oci", "spec"))
    specification.setdefault("hooks", {}).setdefault("createContainer", []).append(hook)
    del specification["process"]["rlimits"]
    (root / "etc/containerd/cri-base.json").write_text(json.dumps(specification))
    (root / "etc/cni/net.d").mkdir(parents=True)
    (root / "etc/cni/net.d/10-kuberouter.conflist").write_text(json.dumps(_CNI, indent=1))
    (root / "kind/version").write_text(f"v{VERSION}")
    (root / "kind/manifests").mkdir()
    for source, name in ((_HERE / "network.yaml", "default-cni"), (_STORAGE, "default-storage")):
        (root / f"kind/manifests/{name}.yaml").write_text(_manifest(source))
    run("chroot", root, "sh", "-c", (_HERE / "setup.sh").read_text())


def _manifest(template: Path) -> str:
    """Return a manifest with the names of the images."""
    text = template.read_text()
    for variable, value in (("{network}", NETWORK), ("{provisioner}", PROVISIONER), ("{busybox}", BUSYBOX)):
        text = text.replace(variable, value)
    return text


def _import_images(root: Path, paths: Paths, temporary: Path) -> None:
    """Import the images into the node's containerd, packed: a node unpacks those that it starts."""
    write_images(temporary / "images", images(paths.programs))
    write_archive(temporary / "images.tar", temporary / "images")
    with containerd(paths, root / "var/lib/containerd", temporary) as control:
        label = "--label=io.cri-containerd.pinned=pinned"
        run(*control, "images", "import", "--no-unpack", label, temporary / "images.tar", timeout=_LIMIT)


def _import_into_docker(root: Path, name: str) -> None:
    """Make an image of the files. BuildKit would keep several copies of them in its cache."""
    changes = ("ENV container=docker", 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]')
    archive = ("tar", "--create", "--numeric-owner", "--one-file-system", f"--directory={root}", ".")
    with subprocess.Popen(archive, stdout=subprocess.PIPE) as tar:
        options = [f"--change={change}" for change in changes]
        subprocess.run(
            ["docker", "import", *options, "-", name], stdin=tar.stdout, stdout=subprocess.DEVNULL, check=True
        )
    assert tar.returncode == 0, "tar failed"


def _files_of_kind() -> Path:
    """Return the directory of the files that kind's module has for node images: the entrypoint, units of systemd."""
    version = next(
        line.removeprefix("version=")
        for line in (ROOT / "tools/kind.sh").read_text().splitlines()
        if line.startswith("version=")
    )
    module = json.loads(run("go", "mod", "download", "-json", f"sigs.k8s.io/kind@{version}", timeout=_LIMIT))
    return Path(module["Dir"]) / "images/base/files"
