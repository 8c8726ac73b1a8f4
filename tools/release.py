"""Prepare a release: `make release VERSION=0.2.0`.

It needs no network but a registry of Python packages, and publishes nothing. It changes the version in pyproject.toml
and in the chart, and dates the section of CHANGELOG.md. `dist/` gets these files:

- The wheel and the source distribution. Each is built twice from clean copies, and both builds must be equal.
- The chart as a package.
- The release notes, which are the section of CHANGELOG.md.
- SHA256SUMS of these files.

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
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
UNRELEASED: Final = "## Unreleased\n"
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


def _package_chart(out: Path) -> None:
    helm = subprocess.run([ROOT / "tools/helm.sh"], check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run([helm, "package", ROOT / "charts/tetrapod", "--destination", out], check=True, capture_output=True)


def _write_dist(version: str, out: Path) -> None:
    if out.exists():
        shutil.rmtree(out)
    out.mkdir(parents=True)
    _build_twice(out)
    _package_chart(out)
    (out / "NOTES.md").write_text(section((ROOT / "CHANGELOG.md").read_text(), f"## {version} "))
    sums = [f"{digest(path)}  {path.name}\n" for path in sorted(out.iterdir())]
    (out / "SHA256SUMS").write_text("".join(sums))
    print("".join(sums), end="")


def release(version: str, out: Path, *, check: bool) -> None:
    """Prepare a release.

    Args:
        version: the version, such as 0.2.0 or 0.2.0rc1.
        out: the directory of the files, which is emptied first.
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
    _write_dist(version, out)


def main() -> int:
    parser = argparse.ArgumentParser(prog="release", description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--check", action="store_true", help="build the committed version, and change nothing")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    arguments = parser.parse_args()
    try:
        release(arguments.version, arguments.out, check=arguments.check)
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
