"""The image of a release for two architectures, and the image and the chart in a registry.

The image is built over local base images (`--offline`), because no registry may be reachable.
"""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Final

import pytest
import yaml

from release import image_repository
from release_image import image_digest
from support.helm import KUBERNETES, helm, pod_templates
from support.kubectl import Kubectl
from support.release_clone import ROOT, make_clone, release

VERSION: Final = "9.8.7"
_ELF_MACHINES: Final = {"amd64": 62, "arm64": 183}

pytestmark = [pytest.mark.buildkit, pytest.mark.timeout(2400)]


@dataclass(frozen=True)
class Archive:
    """An OCI archive."""

    file: Path

    def blob(self, digest: str) -> bytes:
        with tarfile.open(self.file) as tar:
            member = tar.extractfile(f"blobs/{digest.replace(':', '/')}")
            assert member is not None
            return member.read()

    def document(self, digest: str) -> Any:
        return json.loads(self.blob(digest))

    def manifests(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the descriptors of the images by architecture, and those of their attestations by the image's
        digest.
        """
        index = self.document(image_digest(self.file))["manifests"]
        kind = "vnd.docker.reference.type"
        images = {one["platform"]["architecture"]: one for one in index if kind not in one.get("annotations", {})}
        attestations = {
            one["annotations"]["vnd.docker.reference.digest"]: one for one in index if one not in images.values()
        }
        return images, attestations

    def statement(self, attestation: dict[str, Any], predicate_type: str) -> Any:
        """Return the only in-toto statement whose predicate type begins so."""
        layers = self.document(attestation["digest"])["layers"]
        (layer,) = [one for one in layers if one["annotations"]["in-toto.io/predicate-type"].startswith(predicate_type)]
        return self.document(layer["digest"])


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for program in ("skopeo", "docker", "debootstrap"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not on this machine")
    clone = make_clone(tmp_path_factory.mktemp("release") / "clone")
    done = release(clone, VERSION, "--image", "linux/amd64,linux/arm64", "--offline")
    assert done.returncode == 0, done.stderr[-4000:]
    return clone / "dist"


@pytest.fixture(scope="module")
def archive(dist: Path) -> Archive:
    return Archive(dist / f"tetrapod-{VERSION}-image.tar")


@pytest.fixture
def registry() -> Iterator[str]:
    """The address of an empty registry."""
    argv = [str(ROOT / "tools/registry.sh"), "sh", "-c", "echo $REGISTRY; cat >/dev/null"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address, "the registry has not started"
        yield address
        process.stdin.close()


@pytest.mark.parametrize("architecture", ["amd64", "arm64"])
def test_programs_are_of_the_architecture_of_the_image(archive: Archive, architecture: str) -> None:
    images, _ = archive.manifests()
    assert set(images) == set(_ELF_MACHINES)
    manifest = archive.document(images[architecture]["digest"])
    config = archive.document(manifest["config"]["digest"])
    assert config["architecture"] == architecture
    assert config["config"]["Entrypoint"] == ["tetrapod"]
    names, machines = [], set()
    for layer in manifest["layers"]:
        with tarfile.open(fileobj=BytesIO(archive.blob(layer["digest"]))) as tar:
            for member in tar:
                names.append(member.name)
                if member.isfile() and member.name.startswith("opt/tetrapod/") and member.name.endswith(".so"):
                    machines.add(elf_machine(tar.extractfile(member)))
    assert machines == {_ELF_MACHINES[architecture]}
    assert {"opt/tetrapod/bin/tetrapod", "certs/core", "data"} <= set(names)


def elf_machine(file: IO[bytes] | None) -> int:
    """Return the number of the processor in the header of a program."""
    assert file is not None
    header = file.read(20)
    assert header.startswith(b"\x7fELF")
    (machine,) = struct.unpack_from("<H", header, 18)
    return int(machine)


@pytest.mark.parametrize("architecture", ["amd64", "arm64"])
def test_each_image_has_its_provenance_and_its_packages(archive: Archive, architecture: str) -> None:
    images, attestations = archive.manifests()
    digest = images[architecture]["digest"]
    attestation = attestations[digest]
    provenance = archive.statement(attestation, "https://slsa.dev/provenance/")
    bill = archive.statement(attestation, "https://spdx.dev/Document")
    for statement in (provenance, bill):
        (subject,) = statement["subject"]
        assert subject["digest"] == {"sha256": digest.removeprefix("sha256:")}
        assert image_repository() in subject["name"]
    packages = {package["name"]: package for package in bill["predicate"]["packages"]}
    assert packages["tetrapod-apiserver"]["versionInfo"] == VERSION
    assert {"cryptography", "uvloop", "libc6"} <= set(packages)
    (reference,) = [ref for ref in packages["libc6"]["externalRefs"] if ref["referenceType"] == "purl"]
    assert f"arch={architecture}" in reference["referenceLocator"]


def test_the_chart_in_a_registry_names_the_image_there_by_digest(
    dist: Path, archive: Archive, registry: str, kubectl: Kubectl
) -> None:
    """With the commands of CONTRIBUTING.md, to a registry without TLS."""
    image = f"docker://{registry}/{image_repository()}"
    skopeo(
        "copy",
        "--all",
        "--preserve-digests",
        "--dest-tls-verify=false",
        f"oci-archive:{archive.file}",
        f"{image}:{VERSION}",
    )
    helm("push", str(dist / f"tetrapod-{VERSION}.tgz"), f"oci://{registry}/charts", "--plain-http")

    chart = (f"oci://{registry}/charts/tetrapod", "--version", VERSION, "--plain-http")
    rendered = helm("template", "rel", *chart, KUBERNETES, "--set", f"image.registry={registry}")
    templates = pod_templates([document for document in yaml.safe_load_all(rendered) if document])
    used = {
        container["image"]
        for template in templates.values()
        for container in template["spec"]["containers"]
        if "/etcd" not in container["image"] and "redis" not in container["image"]
    }
    reference = f"{registry}/{image_repository()}@{image_digest(archive.file)}"
    assert used == {reference}
    installed = helm(
        "install", "rel", *chart, "--dry-run=server", "--set", f"image.registry={registry}", kubectl=kubectl
    )
    assert reference in installed

    images, attestations = archive.manifests()
    index = json.loads(skopeo("inspect", "--raw", "--tls-verify=false", f"docker://{reference}"))
    pushed = {one["digest"] for one in index["manifests"]}
    assert pushed == {one["digest"] for one in (*images.values(), *attestations.values())}
    inspect = ("inspect", "--tls-verify=false", "--override-os=linux", "--override-arch=arm64", f"docker://{reference}")
    assert json.loads(skopeo(*inspect))["Architecture"] == "arm64"


def skopeo(*arguments: str) -> str:
    return subprocess.run(["skopeo", *arguments], check=True, capture_output=True, text=True).stdout
