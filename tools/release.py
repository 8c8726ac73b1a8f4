"""Prepare a release: `make release VERSION=0.2.0`.

It needs no network but registries of packages, and publishes nothing. It changes the version in pyproject.toml
and in the chart, and dates the section of CHANGELOG.md. `dist/` gets these files:

- The wheel and the source distribution. Each is built twice from clean copies, and both builds must be equal.
- The software bill of materials (CycloneDX) of the locked dependencies.
- With `--image PLATFORMS`: the image as an OCI archive, built by BuildKit (tools/buildkit.sh) for these platforms, with
  its SBOM and its provenance. It needs root. With `--offline` no image is pulled for it: the base images are made from
  Debian's packages, and the SBOM scanner from its Go module. Such an image is for trying, and not for publishing.
- The chart as a package. With `--image` or `--image-digest` it names the published image by its digest.
- The release notes, which are the section of CHANGELOG.md.
- SHA256SUMS of these files, and with `--sign KEY` its signature by an SSH key (SHA256SUMS.sig).

Then it prints what is left to do. `--check` builds the same from the committed version and changes no file of the
repository; the workflow that publishes a release runs it.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from release_image import ImageOptions, build_image

ROOT: Final = Path(__file__).parent.parent
UNRELEASED: Final = "## Unreleased\n"
REGISTRY: Final = "ghcr.io"
SIGNED: Final = "tetrapod-release"
"""The namespace of signatures, which ssh-keygen binds to a purpose."""
SBOM_TOOL: Final = "cyclonedx-bom==7.5.0"
_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(rc[0-9]+)?")
_SECTION: Final = re.compile(r"^## ", re.MULTILINE)


class NotReleasable(Exception):
    """The repository is not in a state from which a release can be made. The message gives the reason."""


def section(changelog: str, heading: str) -> str:
    """Return the text of a section of the changelog without its heading.

    Args:
        changelog: the whole text.
        heading: the beginning of the heading, such as "## Unreleased".

    Raises:
        NotReleasable: the section does not exist or is empty.
    """
    start = changelog.find(f"\n{heading}")
    if start < 0:
        raise NotReleasable(f"CHANGELOG.md has no section {heading!r}")
    body = changelog[changelog.index("\n", start + 1) :]
    end = _SECTION.search(body)
    text = body[: end.start() if end else len(body)].strip()
    if not text:
        raise NotReleasable(f"the section {heading!r} of CHANGELOG.md is empty")
    return text + "\n"


def dated(changelog: str, version: str, date: datetime.date) -> str:
    """Return the changelog with the unreleased section under the heading of a version, and an empty one before it.

    Raises:
        NotReleasable: the unreleased section does not exist or is empty, or the version has a section already.
    """
    section(changelog, UNRELEASED.strip())
    if f"\n## {version} " in changelog:
        raise NotReleasable(f"CHANGELOG.md has a section of {version} already")
    return changelog.replace(UNRELEASED, f"{UNRELEASED}\n## {version} ({date})\n", 1)


def with_version(text: str, pattern: str, version: str) -> str:
    """Return a file's text with another version.

    Args:
        text: the text.
        pattern: a regular expression that matches one line; its two groups are what surrounds the version.
        version: the new version.

    Raises:
        NotReleasable: not exactly one line matches.
    """
    changed, count = re.subn(pattern, rf"\g<1>{version}\g<2>", text, flags=re.MULTILINE)
    if count != 1:
        raise NotReleasable(f"{count} lines match {pattern}")
    return changed


def chart_version(version: str) -> str:
    """Return a version as the chart writes it: a pre-release of SemVer is separated by a hyphen."""
    return re.sub(r"rc([0-9]+)$", r"-rc.\1", version)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _current_version() -> str:
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def _write_version(version: str) -> None:
    files = {
        "pyproject.toml": ((r'^(version = ")[^"]*(")$', version),),
        "charts/tetrapod/Chart.yaml": (
            (r"^(version: )\S+()$", chart_version(version)),
            (r'^(appVersion: ")[^"]*(")$', chart_version(version)),
        ),
    }
    texts = {}
    for name, changes in files.items():
        text = (ROOT / name).read_text()
        for pattern, value in changes:
            text = with_version(text, pattern, value)
        texts[name] = text
    changelog = (ROOT / "CHANGELOG.md").read_text()
    texts["CHANGELOG.md"] = dated(changelog, version, datetime.datetime.now(datetime.UTC).date())
    for name, text in texts.items():
        (ROOT / name).write_text(text)


def _copy(target: Path) -> None:
    """Copy every file that git knows, as it is now, into a directory."""
    for name in _git("ls-files", "-z").split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)


def _build(out: Path) -> None:
    """Build the wheel and the source distribution from a clean copy, with the date of the last commit."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": _git("log", "-1", "--format=%ct")}
    constraints = ("--build-constraints", str(ROOT / "requirements-build.lock"), "--require-hashes")
    with tempfile.TemporaryDirectory() as directory:
        _copy(Path(directory))
        for kind in ("--sdist", "--wheel"):
            subprocess.run(
                [sys.executable, "-m", "uv", "build", "--quiet", kind, *constraints, "--out-dir", str(out), directory],
                check=True,
                env=environment,
            )
    (out / ".gitignore").unlink(missing_ok=True)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _build_twice(out: Path) -> None:
    """Build the distributions into `out`, and once more elsewhere.

    Raises:
        NotReleasable: the builds differ.
    """
    _build(out)
    with tempfile.TemporaryDirectory() as directory:
        again = Path(directory)
        _build(again)
        for built in sorted(again.iterdir()):
            if digest(built) != digest(out / built.name):
                raise NotReleasable(f"two builds of {built.name} differ")


@dataclass(frozen=True)
class Artefacts:
    """The choices of what a release contains.

    Attributes:
        image: how to build the image; None to build none.
        image_digest: the digest of the image that the chart names, if it was built elsewhere.
        key: the file of the SSH key that signs; None to sign nothing.
    """

    image: ImageOptions | None = None
    image_digest: str = ""
    key: Path | None = None


def repository() -> str:
    """Return the URL of the repository, from pyproject.toml."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"])


def _package_chart(out: Path, image_digest: str) -> None:
    """Package the chart. With a digest, its values name the published image by it, instead of an image built here."""
    helm = subprocess.run([ROOT / "tools/helm.sh"], check=True, capture_output=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory() as directory:
        chart = Path(directory) / "tetrapod"
        shutil.copytree(ROOT / "charts/tetrapod", chart)
        if image_digest:
            values = chart / "values.yaml"
            values.write_text(with_image(values.read_text(), image_repository(), image_digest))
        subprocess.run([helm, "package", chart, "--destination", out], check=True, capture_output=True)


def image_repository() -> str:
    """Return the path of the image in its registry, such as owner/tetrapod, from the URL of the repository."""
    return repository().partition("://")[2].partition("/")[2].lower()


def with_image(values: str, name: str, digest: str) -> str:
    """Return the chart's values with the published image.

    Args:
        values: the text of values.yaml.
        name: its path in the registry, such as owner/tetrapod.
        digest: the digest of the image.

    Raises:
        NotReleasable: the values do not begin with an image as expected.
    """
    text, count = re.subn(
        r"""^image:\n  registry: ""\n  repository: tetrapod\n  tag: ""\n  digest: ""$""",
        f'image:\n  registry: {REGISTRY}\n  repository: {name}\n  tag: ""\n  digest: {digest}',
        values,
        flags=re.MULTILINE,
    )
    if count != 1:
        raise NotReleasable("values.yaml has no image of its own build")
    return text


def _write_bill(version: str, out: Path) -> None:
    """Write the software bill of materials of the locked dependencies. The same lock gives the same file."""
    argv = [sys.executable, "-m", "uv", "tool", "run", "--quiet", "--from", SBOM_TOOL, "cyclonedx-py", "requirements"]
    argv += ["--output-reproducible", "--pyproject", str(ROOT / "pyproject.toml"), "--output-file"]
    argv += [str(out / f"tetrapod_apiserver-{version}.cdx.json"), str(ROOT / "requirements.lock")]
    subprocess.run(argv, check=True)


def _sign(file: Path, key: Path) -> None:
    """Write the signature of a file beside it, as ssh-keygen -Y does."""
    subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", SIGNED, file], check=True, capture_output=True)


def _write_dist(version: str, out: Path, artefacts: Artefacts) -> None:
    if out.exists():
        shutil.rmtree(out)
    out.mkdir(parents=True)
    _build_twice(out)
    _write_bill(version, out)
    image_digest = artefacts.image_digest
    if artefacts.image is not None:
        with tempfile.TemporaryDirectory() as directory:
            _copy(Path(directory))
            image_digest = build_image(Path(directory), out / f"tetrapod-{version}-image.tar", artefacts.image)
    _package_chart(out, image_digest)
    (out / "NOTES.md").write_text(section((ROOT / "CHANGELOG.md").read_text(), f"## {version} "))
    lines = [f"{digest(path)}  {path.name}\n" for path in sorted(out.iterdir())]
    sums = out / "SHA256SUMS"
    sums.write_text("".join(lines))
    if artefacts.key is not None:
        _sign(sums, artefacts.key)
    print("".join(lines), end="")


def release(version: str, out: Path, artefacts: Artefacts, *, check: bool) -> None:
    """Prepare a release.

    Args:
        version: the version, such as 0.2.0 or 0.2.0rc1.
        out: the directory of the files, which is emptied first.
        artefacts: what the release contains.
        check: whether the repository has this version already and must not be changed.

    Raises:
        NotReleasable: the version is malformed or not the committed one, or files are changed.
    """
    if not _VERSION.fullmatch(version):
        raise NotReleasable(f"{version!r} is not a version such as 0.2.0 or 0.2.0rc1")
    if changed := _git("status", "--porcelain"):
        raise NotReleasable(f"files are not committed:\n{changed}")
    if check:
        if version != _current_version():
            raise NotReleasable(f"pyproject.toml has version {_current_version()}")
    else:
        if f"v{version}" in _git("tag").split():
            raise NotReleasable(f"the tag v{version} exists")
        _write_version(version)
    _write_dist(version, out, artefacts)


def main() -> int:
    parser = argparse.ArgumentParser(prog="release", description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--check", action="store_true", help="build the committed version, and change nothing")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--repository", default="", help="fail unless pyproject.toml names this URL")
    parser.add_argument("--image", default="", metavar="PLATFORMS", help="build the image, for linux/amd64,linux/arm64")
    parser.add_argument("--base", default="", help="the base image, instead of that of the Dockerfile")
    parser.add_argument("--offline", action="store_true", help="pull no image: make the base and the scanner here")
    parser.add_argument("--image-digest", default="", help="the digest of the published image, for the chart")
    parser.add_argument("--sign", type=Path, metavar="KEY", help="sign SHA256SUMS with this SSH key")
    arguments = parser.parse_args()
    image = None
    if arguments.image:
        name = f"{REGISTRY}/{image_repository()}:{arguments.version}"
        image = ImageOptions(name, arguments.image, arguments.base, arguments.offline)
    artefacts = Artefacts(image, arguments.image_digest, arguments.sign)
    try:
        if arguments.repository not in ("", repository()):
            raise NotReleasable(f"pyproject.toml names {repository()}, and this is {arguments.repository}")
        release(arguments.version, arguments.out.absolute(), artefacts, check=arguments.check)
    except NotReleasable as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    if not arguments.check:
        print(
            f"Look at the changes, then: git commit --all --message 'release {arguments.version}' && "
            f"git tag --sign v{arguments.version} && git push --follow-tags"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
