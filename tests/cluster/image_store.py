"""Directories of containerd that already have the images.

The images are imported once, into a directory in the cache. Each node gets a copy of it, in which files are hard
links, because containerd never changes the files of an image. Its databases are real copies. So a node starts with all
images at once, and its files are deleted with its copy.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from cluster.archives import Image, write_archive, write_images
from cluster.commands import run, succeeds
from cluster.settings import Paths
from support.server import end
from support.waiting import until

_NAMESPACE: Final = "k8s.io"
"""The namespace in containerd that the kubelet's images are in."""
_IMPORT_LIMIT: Final = 300
_CONFIGURATION: Final = """version = 3
root = "{root}"
state = "{state}"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.nri.v1.nri"]
[grpc]
address = "{socket}"
"""


class ImageSet(Protocol):
    """A set of images."""

    name: str
    """Their purpose, which is part of the name of the directory."""
    in_registry: bool
    """Whether the cluster has a registry with them."""

    def inputs(self) -> list[Path]:
        """Return the files on which the images depend."""

    def images(self) -> list[Image]:
        """Return the images."""


@dataclass(frozen=True)
class Store:
    """A directory with images.

    Args:
        directory: the directory, in the cache.
    """

    directory: Path

    @property
    def images(self) -> Path:
        """The files of the images (`archives.write_images`)."""
        return self.directory / "images"

    @property
    def registry(self) -> Path:
        """The files of the registry, if the cluster has one (`registry.py`)."""
        return self.directory / "registry"

    def copy(self, target: Path) -> None:
        """Copy containerd's directory for a node."""
        source = self.directory / "containerd"
        run("cp", "--archive", "--link", source, target)
        for database in target.rglob("*.db"):
            original = source / database.relative_to(target)
            database.unlink()
            shutil.copy2(original, database)


def image_store(paths: Paths, images: ImageSet) -> Store:
    """Return the directory with the images, which the first call with these inputs makes.

    Directories for images of the same name with other inputs are deleted.
    """
    directory = paths.image_stores / f"{images.name}-{digest(images.inputs())}"
    if directory.exists():
        return Store(directory)
    for old in paths.image_stores.glob(f"{images.name}-*"):
        shutil.rmtree(old)
    paths.image_stores.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=paths.image_stores, prefix="new-") as temporary:
        made, archive = Path(temporary) / "store", Path(temporary) / "images.tar"
        write_images(made / "images", images.images())
        write_archive(archive, made / "images")
        with containerd(paths, made / "containerd", Path(temporary)) as control:
            run(*control, "images", "import", archive, timeout=_IMPORT_LIMIT)
        made.rename(directory)
    return Store(directory)


def digest(inputs: Sequence[Path]) -> str:
    """Return a digest of the names, sizes and times of programs, and of the content of sources."""
    total = hashlib.sha256()
    for path in inputs:
        status = path.stat()
        total.update(f"{path.name} {status.st_size}".encode())
        source = path.suffix in (".py", ".sh", ".yaml")
        total.update(path.read_bytes() if source else str(status.st_mtime_ns).encode())
    return total.hexdigest()[:12]


@contextmanager
def containerd(paths: Paths, root: Path, temporary: Path) -> Iterator[tuple[str, ...]]:
    """Run containerd in a mount namespace of its own, and yield the beginning of commands of ctr."""
    socket, log = temporary / "containerd.sock", temporary / "containerd.log"
    configuration = temporary / "containerd.toml"
    configuration.write_text(_CONFIGURATION.format(root=root, state=temporary / "state", socket=socket))
    argv = ["unshare", "--mount", str(paths.programs / "containerd"), f"--config={configuration}"]
    with log.open("wb") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=out)
    control = (str(paths.programs / "ctr"), f"--address={socket}", f"--namespace={_NAMESPACE}")
    try:
        until(lambda: succeeds(*control, "version"), timeout=30, description=f"containerd ({log})")
        yield control
    finally:
        end(process)
