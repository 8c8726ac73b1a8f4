"""The documentation site is built, and a link that leads nowhere fails the build (`make docs`)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    environment = {**os.environ, "PYTHONPATH": str(root), "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the repository, to change."""
    target = tmp_path / "repository"
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in listed.splitlines():
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)
    subprocess.run(["git", "init", "--quiet"], cwd=target, check=True)
    return target


@pytest.mark.long
def test_the_site_shows_pages_and_the_sources_that_they_link_to(tmp_path: Path) -> None:
    built = build(ROOT, tmp_path / "site")
    assert built.returncode == 0, built.stderr
    flow = (tmp_path / "site" / "explanation" / "request-flow.html").read_text()
    assert 'class="mermaid"' in flow
    assert "../source/services/tetrapod/generic/filters/chain.py.html" in flow
    assert 'src="../images/console-path.png"' in (tmp_path / "site" / "how-to" / "console.html").read_text()
    assert (tmp_path / "site" / "images" / "console-path.png").is_file()
    assert (
        "DefaultBuildHandlerChain"
        in (tmp_path / "site/source/services/tetrapod/generic/filters/chain.py.html").read_text()
    )


@pytest.mark.long
def test_a_link_that_leads_nowhere_fails_the_build(copy: Path, tmp_path: Path) -> None:
    page = copy / "docs" / "explanation" / "design.md"
    page.write_text(page.read_text() + "\n[missing](../../services/tetrapod/missing.py)\n")
    built = build(copy, tmp_path / "site")
    assert built.returncode != 0
    assert "missing.py" in built.stderr
