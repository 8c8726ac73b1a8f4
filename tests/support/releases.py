"""Check out the previous release from git, to run it beside this one.

The previous release is the newest tag before this commit. Without tags it is the parent of the commit that raised
`version` in pyproject.toml. TETRAPOD_PREVIOUS may name another revision.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_DESCRIPTIONS: Final = "services/tetrapod/machinery/types/data/descriptions.zip"  # hatch_build.py makes it


class NoRelease(Exception):
    """No previous release exists, or it cannot be checked out. The message gives the reason."""


@dataclass(frozen=True)
class Release:
    """A checked-out release. `python` is an interpreter with its dependencies installed."""

    revision: str
    services: Path
    python: str

    @property
    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self.services)}


def _git(root: Path, *args: str) -> bytes:
    return subprocess.run(["git", *args], cwd=root, check=True, capture_output=True).stdout


def _git_text(root: Path, *args: str) -> str:
    """Return the output of a git command, or "" if it fails."""
    try:
        return _git(root, *args).decode().strip()
    except subprocess.CalledProcessError:
        return ""


def _version(project: str) -> str:
    match = re.search(r'^version = "(.*)"$', project, re.MULTILINE)
    return match[1] if match else ""


def previous_revision(root: Path = ROOT) -> str:
    """Return the git revision of the previous release. Raises NoRelease."""
    if shutil.which("git") is None or not _git_text(root, "rev-parse", "HEAD"):
        raise NoRelease("this is no checkout with a history: TETRAPOD_PREVIOUS may name a revision")
    if tag := _git_text(root, "describe", "--tags", "--abbrev=0", "HEAD^"):
        return tag
    present = _version((root / "pyproject.toml").read_text())
    if _version(_git_text(root, "show", "HEAD:pyproject.toml")) != present:  # raised, and not committed yet
        return _git_text(root, "rev-parse", "HEAD")
    raised = _git_text(root, "log", "-1", "--format=%H", "-G^version = ", "--", "pyproject.toml")
    before = _git_text(root, "rev-parse", "--verify", "--quiet", f"{raised}^^{{commit}}")
    if not before and _git_text(root, "rev-parse", "--is-shallow-repository") == "true":
        raise NoRelease(f"this clone is shallow, and what came before {present} is not in it: git fetch --unshallow")
    if not before or not _version(_git_text(root, "show", f"{before}:pyproject.toml")):
        raise NoRelease(f"{present} is the first release")
    return before


def previous_release(directory: Path) -> Release:
    """Check out the previous release into `directory`. Raises NoRelease."""
    revision = os.environ.get("TETRAPOD_PREVIOUS") or previous_revision()
    try:
        archive = _git(ROOT, "archive", revision, "services", "requirements.lock", "hatch_build.py")
    except subprocess.CalledProcessError as error:
        raise NoRelease(f"{revision} cannot be taken out: {error.stderr.decode().strip()}") from error
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        tar.extractall(directory, filter="data")
    _add_descriptions(directory)
    release = Release(revision, directory / "services", _python(directory))
    argv = [release.python, "-c", "import tetrapod; print(*tetrapod.__path__)"]
    loaded = subprocess.run(
        argv, check=True, capture_output=True, text=True, cwd=directory, env={**os.environ, **release.environment}
    )
    assert loaded.stdout.strip() == str(release.services / "tetrapod"), loaded.stdout
    return release


def _add_descriptions(directory: Path) -> None:
    """Copy the descriptions for `kubectl explain` from this tree if both releases are built from the same Kubernetes
    version.
    """
    ours = ROOT / _DESCRIPTIONS
    made_of = {
        tuple(re.findall(r"^VERSION = .*$", (root / "hatch_build.py").read_text(), re.MULTILINE))
        for root in (ROOT, directory)
    }
    if ours.exists() and len(made_of) == 1:
        shutil.copyfile(ours, directory / _DESCRIPTIONS)


def _locked(directory: Path) -> set[str]:
    return set(re.findall(r"^\S+==\S+", (directory / "requirements.lock").read_text(), re.MULTILINE))


def _python(directory: Path) -> str:
    """Return this interpreter if it has all locked dependencies of the release, otherwise that of a new virtual
    environment.
    """
    if _locked(directory) <= _locked(ROOT):
        return sys.executable
    environment = directory / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    pip = [str(environment / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
    subprocess.run([*pip, "-r", str(directory / "requirements.lock")], check=True)
    return str(environment / "bin" / "python")
