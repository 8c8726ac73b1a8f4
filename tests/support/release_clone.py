"""A clone of this repository in which `tools/release.py` runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def make_clone(target: Path) -> Path:
    """Clone the repository with the files as they are here, committed or not, and an entry in the changelog."""
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{ROOT}", target], check=True)
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout.decode()
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file() and not (ROOT / name).is_symlink():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)
            shutil.copymode(ROOT / name, target / name)
    changelog = target / "CHANGELOG.md"
    text = changelog.read_text()
    if "\n## Unreleased\n\n## " in text:
        changelog.write_text(text.replace("\n## Unreleased\n", "\n## Unreleased\n\n- Something.\n", 1))
    commit(target)
    return target


def commit(clone: Path) -> None:
    """Commit every file."""
    who = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    for command in (["add", "--all"], [*who, "commit", "--quiet", "--allow-empty", "--message=test"]):
        subprocess.run(["git", *command], cwd=clone, check=True)


def release(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `tools/release.py`, and return the result, also if it failed."""
    argv = [sys.executable, "tools/release.py", *arguments]
    return subprocess.run(argv, cwd=clone, capture_output=True, text=True, check=False)
