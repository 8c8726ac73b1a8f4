"""The image of a release, built by BuildKit into an OCI archive with its SBOM and its provenance."""

from __future__ import annotations

import json
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
_LOCAL_BASE: Final = "tetrapod-base:trixie"
_WITH_SCANNER: Final = """
generator=$("$0/sbom_scanner.sh")
exec "$@" "--opt=attest:sbom=generator=$generator"
"""
"""A shell script that runs its arguments, `buildctl build …`, with the local scanner. $0 is the directory of tools."""


@dataclass(frozen=True)
class ImageOptions:
    """How to build the image.

    Attributes:
        name: the name by which it will be published, which the SBOM and the provenance contain.
        platforms: its platforms, such as linux/amd64,linux/arm64.
        base: the base image; "" for that of the Dockerfile.
        offline: whether to make the base images from Debian's packages (tools/base_image.sh) and the SBOM scanner from
            its module (tools/sbom_scanner.sh), instead of pulling them. `base` is ignored then.
    """

    name: str
    platforms: str
    base: str
    offline: bool


def build_image(source: Path, archive: Path, options: ImageOptions) -> str:
    """Build the image, and return the digest of its index.

    Args:
        source: the directory of the sources.
        archive: the file to write, an OCI archive.
        options: how to build it.
    """
    if not options.offline:
        arguments = [f"--opt=build-arg:BASE={options.base}"] if options.base else []
        return _build(source, archive, options, [], [*arguments, "--opt=attest:sbom="])
    with tempfile.TemporaryDirectory() as directory:
        bases = _local_bases(options.platforms.split(","), Path(directory))
        with_scanner = [str(ROOT / "tools/registry.sh"), "sh", "-euc", _WITH_SCANNER, str(ROOT / "tools")]
        return _build(source, archive, options, with_scanner, _base_arguments(bases))


def _build(source: Path, archive: Path, options: ImageOptions, prefix: list[str], arguments: list[str]) -> str:
    """Run BuildKit, and return the digest of the image's index.

    Args:
        source: the directory of the sources.
        archive: the file to write.
        options: the name and the platforms of the image.
        prefix: a command that runs BuildKit's, which it gets as its last arguments.
        arguments: further arguments of `buildctl build`.
    """
    argv = [*prefix, str(ROOT / "tools/buildkit.sh"), "buildctl", "build", "--progress=plain"]
    argv += ["--frontend=dockerfile.v0", f"--local=context={source}", f"--local=dockerfile={source}/deploy"]
    argv += [f"--opt=platform={options.platforms}", "--opt=attest:provenance=mode=max", *arguments]
    argv.append(f"--output=type=oci,dest={archive},name={options.name},rewrite-timestamp=true")
    subprocess.run(argv, check=True)
    return image_digest(archive)


def _base_arguments(bases: Mapping[str, Path]) -> list[str]:
    """Return the arguments of BuildKit for a base image in OCI layouts, by platform."""
    arguments = [f"--opt=build-arg:BASE={_LOCAL_BASE}"]
    for number, (platform, folder) in enumerate(bases.items()):
        (manifest,) = json.loads((folder / "index.json").read_text())["manifests"]
        context = f"context:{_LOCAL_BASE}::{platform}=oci-layout://base{number}@{manifest['digest']}"
        arguments += [f"--oci-layout=base{number}={folder}", f"--opt={context}"]
    return arguments


def _local_bases(platforms: list[str], directory: Path) -> dict[str, Path]:
    """Make the base image of each platform, and of this machine for the build, and return their OCI layouts."""
    argv = ["dpkg", "--print-architecture"]
    native = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run([ROOT / "tools/dockerd.sh"], check=True)
    layouts = {}
    for platform in sorted({f"linux/{native}", *platforms}):
        architecture = platform.removeprefix("linux/")
        image = _LOCAL_BASE if architecture == native else f"{_LOCAL_BASE}-{architecture}"
        layouts[platform] = directory / architecture
        subprocess.run([ROOT / "tools/base_image.sh", image, architecture], check=True)
        target = f"oci:{layouts[platform]}:base"
        subprocess.run(["skopeo", "copy", "--quiet", f"docker-daemon:{image}", target], check=True)
    return layouts


def image_digest(archive: Path) -> str:
    """Return the digest of the only image in an OCI archive."""
    with tarfile.open(archive) as tar:
        member = tar.extractfile("index.json")
        assert member is not None
        (image,) = json.load(member)["manifests"]
    return str(image["digest"])
