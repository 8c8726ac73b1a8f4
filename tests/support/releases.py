"""The release before this one, out of git, to be run beside it.

It is the newest tag below this commit; where there is none, the last commit of the version before: the one below that which raised
`version` in pyproject.toml. TETRAPOD_PREVIOUS may name any other revision.
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
    """There is none before this one, or it cannot be had; says why."""


@dataclass(frozen=True)
class Release:
    """`python` has what it needs."""

    revision: str
    services: Path
    python: str

    @property
    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self.services)}


def _git(root: Path, *args: str) -> bytes:
    return subprocess.run(["git", *args], cwd=root, check=True, capture_output=True).stdout


def _said(root: Path, *args: str) -> str:
    """Nothing where git says no."""
    try:
        return _git(root, *args).decode().strip()
    except subprocess.CalledProcessError:
        return ""


def _version(project: str) -> str:
    found = re.search(r'^version = "(.*)"$', project, re.MULTILINE)
    return found[1] if found else ""


def previous_revision(root: Path = ROOT) -> str:
    """Raises NoRelease."""
    if shutil.which("git") is None or not _said(root, "rev-parse", "HEAD"):
        raise NoRelease("this is no checkout with a history: TETRAPOD_PREVIOUS may name a revision")
    if tag := _said(root, "describe", "--tags", "--abbrev=0", "HEAD^"):
        return tag
    present = _version((root / "pyproject.toml").read_text())
    if _version(_said(root, "show", "HEAD:pyproject.toml")) != present:  # raised, and not committed yet
        return _said(root, "rev-parse", "HEAD")
    raised = _said(root, "log", "-1", "--format=%H", "-G^version = ", "--", "pyproject.toml")
    before = _said(root, "rev-parse", "--verify", "--quiet", f"{raised}^^{{commit}}")
    if not before and _said(root, "rev-parse", "--is-shallow-repository") == "true":
        raise NoRelease(f"this clone is shallow, and what came before {present} is not in it: git fetch --unshallow")
    if not before or not _version(_said(root, "show", f"{before}:pyproject.toml")):
        raise NoRelease(f"{present} is the first release")
    return before


def previous_release(directory: Path) -> Release:
    """Taken out into `directory`. Raises NoRelease."""
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
    loaded = subprocess.run(argv, check=True, capture_output=True, text=True, cwd=directory, env={**os.environ, **release.environment})
    assert loaded.stdout.strip() == str(release.services / "tetrapod"), loaded.stdout
    return release


def _add_descriptions(directory: Path) -> None:
    """Ours are good for it too, where both are made of the same Kubernetes; without any `kubectl explain` has less to say."""
    ours = ROOT / _DESCRIPTIONS
    made_of = {tuple(re.findall(r"^VERSION = .*$", (root / "hatch_build.py").read_text(), re.MULTILINE)) for root in (ROOT, directory)}
    if ours.exists() and len(made_of) == 1:
        shutil.copyfile(ours, directory / _DESCRIPTIONS)


def _locked(directory: Path) -> set[str]:
    return set(re.findall(r"^\S+==\S+", (directory / "requirements.lock").read_text(), re.MULTILINE))


def _python(directory: Path) -> str:
    """Ours, where everything that it needs is installed for us in the same version."""
    if _locked(directory) <= _locked(ROOT):
        return sys.executable
    environment = directory / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    pip = [str(environment / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
    subprocess.run([*pip, "-r", str(directory / "requirements.lock")], check=True)
    return str(environment / "bin" / "python")
