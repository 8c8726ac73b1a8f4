"""`make release` in a clone of this repository: what it changes, what it builds, and when it refuses."""

from __future__ import annotations

import datetime
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from release import NotReleasable, chart_version, dated, digest, section, with_version

ROOT = Path(__file__).parents[2]
CHANGELOG = "# Changelog\n\n## Unreleased\n\n### Added\n\n- A.\n\n## 0.1.0 (2026-11-21)\n\n- B.\n"
NOTHING_NEW = "# Changelog\n\n## Unreleased\n\n## 0.1.0 (2026-11-21)\n\n- B.\n"


def test_the_unreleased_section_becomes_that_of_the_version() -> None:
    text = dated(CHANGELOG, "0.2.0", datetime.date(2026, 12, 1))
    assert text.startswith("# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-12-01)\n\n### Added\n\n- A.\n")
    assert section(text, "## 0.2.0 ") == "### Added\n\n- A.\n"
    assert section(text, "## 0.1.0 ") == "- B.\n"


@pytest.mark.parametrize(("changelog", "version"), [(NOTHING_NEW, "0.2.0"), (CHANGELOG, "0.1.0")])
def test_nothing_new_and_a_version_that_exists_are_refused(changelog: str, version: str) -> None:
    with pytest.raises(NotReleasable):
        dated(changelog, version, datetime.date(2026, 12, 1))


def test_a_version_is_replaced_in_exactly_one_line() -> None:
    assert with_version('a = 1\nversion = "1"\n', r'^(version = ")[^"]*(")$', "2") == 'a = 1\nversion = "2"\n'
    with pytest.raises(NotReleasable):
        with_version("none\n", r'^(version = ")[^"]*(")$', "2")
    assert chart_version("0.2.0rc1") == "0.2.0-rc.1"
    assert chart_version("0.2.0") == "0.2.0"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with the files as they are here, committed or not, and an entry in the changelog."""
    target = tmp_path / "clone"
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
    who = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    for command in (["add", "--all"], [*who, "commit", "--quiet", "--allow-empty", "--message=test"]):
        subprocess.run(["git", *command], cwd=clone, check=True)


def tool(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "tools/release.py", *arguments]
    return subprocess.run(argv, cwd=clone, capture_output=True, text=True, check=False)


def test_a_release_is_built_twice_alike_and_can_be_checked(clone: Path) -> None:
    refused = tool(clone, "9.8.7", "--check")
    assert refused.returncode == 1
    assert "pyproject.toml has version" in refused.stderr
    (clone / "new").write_text("x")
    assert "files are not committed" in tool(clone, "9.8.7").stderr
    (clone / "new").unlink()

    done = tool(clone, "9.8.7")
    assert done.returncode == 0, done.stderr
    assert "git tag --sign v9.8.7" in done.stdout
    dist = clone / "dist"
    wheel, sdist = "tetrapod_apiserver-9.8.7-py3-none-any.whl", "tetrapod_apiserver-9.8.7.tar.gz"
    assert {path.name for path in dist.iterdir()} == {wheel, sdist, "tetrapod-9.8.7.tgz", "NOTES.md", "SHA256SUMS"}
    lines = (line.partition("  ") for line in (dist / "SHA256SUMS").read_text().splitlines())
    sums = {name: checksum for checksum, _, name in lines}
    assert sums == {path.name: digest(path) for path in dist.iterdir() if path.name != "SHA256SUMS"}
    with tarfile.open(dist / "tetrapod-9.8.7.tgz") as chart:
        member = chart.extractfile("tetrapod/Chart.yaml")
        assert member is not None
        assert re.search(r'^appVersion: "?9\.8\.7"?$', member.read().decode(), re.MULTILINE)
    assert re.search(r"^## 9\.8\.7 \(\d{4}-\d\d-\d\d\)$", (clone / "CHANGELOG.md").read_text(), re.MULTILINE)

    commit(clone)
    assert tool(clone, "9.8.7", "--check").returncode == 0
    assert not subprocess.run(["git", "status", "--porcelain"], cwd=clone, capture_output=True, check=True).stdout
