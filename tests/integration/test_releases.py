"""The revision of the previous release, which is run together with this one (e2e/test_version_skew.py)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.releases import NoRelease, previous_revision


class Checkout:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *args: str) -> str:
        who = ("-c", "user.name=test", "-c", "user.email=test@example.com")
        return subprocess.run(
            ["git", *who, *args], cwd=self.root, check=True, capture_output=True, text=True
        ).stdout.strip()

    def write(self, version: str, target: str = "py311") -> None:
        (self.root / "pyproject.toml").write_text(
            f'[project]\nversion = "{version}"\n[tool.ruff]\ntarget-version = "{target}"\n'
        )

    def commit(self, version: str, **more: str) -> str:
        """Return the commit hash."""
        self.write(version, **more)
        self.git("add", "pyproject.toml")
        self.git("commit", "--quiet", "--allow-empty", "--message", version)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_it_is_the_last_commit_of_the_version_before(checkout: Checkout) -> None:
    checkout.commit("0.1.0")
    last = checkout.commit("0.1.0")
    checkout.commit("0.2.0")
    assert previous_revision(checkout.root) == last
    checkout.commit("0.2.0", target="py312")
    assert previous_revision(checkout.root) == last, "other lines are no release"


def test_a_version_that_is_raised_and_not_committed_counts(checkout: Checkout) -> None:
    last = checkout.commit("0.1.0")
    checkout.write("0.2.0")
    assert previous_revision(checkout.root) == last


def test_the_previous_revision_is_the_tag_of_the_release_before(checkout: Checkout) -> None:
    checkout.commit("0.1.0")
    checkout.git("tag", "v0.1.0")
    checkout.commit("0.1.0")
    checkout.commit("0.2.0")
    checkout.git("tag", "v0.2.0")
    assert previous_revision(checkout.root) == "v0.1.0", "not the one of this commit itself"


def test_a_missing_previous_release_is_reported_with_the_reason(
    checkout: Checkout, tmp_path_factory: pytest.TempPathFactory
) -> None:
    nowhere = tmp_path_factory.mktemp("nowhere")
    with pytest.raises(NoRelease, match="no checkout"):
        previous_revision(nowhere)
    checkout.commit("0.1.0")
    with pytest.raises(NoRelease, match="first release"):
        previous_revision(checkout.root)
    checkout.commit("0.2.0")
    checkout.git("clone", "--quiet", "--depth=1", f"file://{checkout.root}", str(nowhere / "shallow"))
    with pytest.raises(NoRelease, match="shallow"):
        previous_revision(nowhere / "shallow")
