"""Container images in an archive that `ctr images import` reads (Docker's format), made without a container engine."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import shutil
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

_PATH: Final = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


class Layer:
    """The files of a layer, all of which belong to root. The same files make the same archive."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar

    def file(self, name: str, source: Path, mode: int = 0o755) -> None:
        """Add a copy of a file."""
        self.content(name, source.read_bytes(), mode)

    def content(self, name: str, data: bytes, mode: int = 0o644) -> None:
        """Add a file with this content."""
        entry = self._entry(name, tarfile.REGTYPE, mode)
        entry.size = len(data)
        self._tar.addfile(entry, io.BytesIO(data))

    def directory(self, name: str, mode: int = 0o755) -> None:
        """Add a directory."""
        self._tar.addfile(self._entry(name, tarfile.DIRTYPE, mode))

    def link(self, name: str, target: str) -> None:
        """Add a symbolic link."""
        entry = self._entry(name, tarfile.SYMTYPE, 0o777)
        entry.linkname = target
        self._tar.addfile(entry)

    @staticmethod
    def _entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode = kind, mode
        return entry


Contents = Callable[[Layer], None] | Path
"""The source of a layer: a function that fills it, or a tar archive."""


@dataclass(frozen=True)
class Image:
    """An image: its names, its layers, and its configuration (`Cmd`, `User` and so on)."""

    names: tuple[str, ...]
    layers: tuple[Contents, ...]
    config: dict[str, Any] = field(default_factory=dict)


def write_images(directory: Path, images: Sequence[Image]) -> None:
    """Write the files of images into a new directory. A layer that images share is there once.

    Layers and configurations are named after their SHA-256 digests. `manifest.json` names those of each image.
    """
    directory.mkdir(parents=True)
    layers: dict[Contents, str] = {}
    for contents in dict.fromkeys(contents for image in images for contents in image.layers):
        layers[contents] = _write_layer(directory, contents)
    manifests = []
    for image in images:
        digests = [layers[contents] for contents in image.layers]
        config = json.dumps(configuration(image, digests)).encode()
        name = f"{hashlib.sha256(config).hexdigest()}.json"
        (directory / name).write_bytes(config)
        entries = [f"{digest}.tar" for digest in digests]
        manifests.append({"Config": name, "RepoTags": list(image.names), "Layers": entries})
    (directory / "manifest.json").write_text(json.dumps(manifests))


def write_archive(path: Path, images: Path) -> None:
    """Write an archive of the images that `write_images` has written."""
    with tarfile.open(path, "w") as tar:
        for file in sorted(images.iterdir()):
            tar.add(file, file.name)


def configuration(image: Image, digests: Sequence[str]) -> dict[str, Any]:
    """Return the configuration of an image whose layers have these SHA-256 digests."""
    return {
        "architecture": _ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": {"Env": [_PATH], **image.config},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
        "history": [{"created_by": "tests/cluster"} for _ in digests],
    }


def _write_layer(directory: Path, contents: Contents) -> str:
    """Write the archive of a layer as DIGEST.tar, and return the digest."""
    path = directory / "layer"
    if isinstance(contents, Path):
        shutil.copyfile(contents, path)
    else:
        with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
            contents(Layer(tar))
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    path.rename(directory / f"{digest}.tar")
    return digest
