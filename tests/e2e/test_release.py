"""`make release` in a clone of this repository: what it changes, what it builds, and what it rejects."""

from __future__ import annotations

import datetime
import json
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from release import (
    SIGNED,
    NotReleasable,
    chart_version,
    dated,
    digest,
    repository,
    section,
    with_image,
    with_version,
)
from support.release_clone import commit, make_clone, release

ROOT = Path(__file__).parents[2]
CHANGELOG = "# Changelog\n\n## Unreleased\n\n### Added\n\n- A.\n\n## 0.1.0 (2026-11-21)\n\n- B.\n"
NOTHING_NEW = "# Changelog\n\n## Unreleased\n\n## 0.1.0 (2026-11-21)\n\n- B.\n"


def test_the_unreleased_section_becomes_that_of_the_version() -> None:
    text = dated(CHANGELOG, "0.2.0", datetime.date(2026, 12, 1))
    assert text.startswith("# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-12-01)\n\n### Added\n\n- A.\n")
    assert section(text, "## 0.2.0 ") == "### Added\n\n- A.\n"
    assert section(text, "## 0.1.0 ") == "- B.\n"


@pytest.mark.parametrize(("changelog", "version"), [(NOTHING_NEW, "0.2.0"), (CHANGELOG, "0.1.0")])
def test_an_empty_changelog_and_an_existing_version_are_rejected(changelog: str, version: str) -> None:
    with pytest.raises(NotReleasable):
        dated(changelog, version, datetime.date(2026, 12, 1))


def test_a_version_is_replaced_in_exactly_one_line() -> None:
    assert with_version('a = 1\nversion = "1"\n', r'^(version = ")[^"]*(")$', "2") == 'a = 1\nversion = "2"\n'
    with pytest.raises(NotReleasable):
        with_version("none\n", r'^(version = ")[^"]*(")$', "2")
    assert chart_version("0.2.0rc1") == "0.2.0-rc.1"
    assert chart_version("0.2.0") == "0.2.0"


def test_the_chart_names_the_published_image_by_its_digest() -> None:
    values = (ROOT / "charts/tetrapod/values.yaml").read_text()
    image = yaml.safe_load(with_image(values, "owner/tetrapod", "sha256:1"))["image"]
    assert image == {
        "registry": "ghcr.io",
        "repository": "owner/tetrapod",
        "tag": "",
        "digest": "sha256:1",
        "pullPolicy": "IfNotPresent",
    }
    with pytest.raises(NotReleasable):
        with_image("image: {}\n", "owner/tetrapod", "sha256:1")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return make_clone(tmp_path / "clone")


def check_signature(file: Path, public: Path) -> None:
    """Verify a signature as docs/reference/versions.md shows."""
    signers = file.parent.parent / "signers"
    signers.write_text(f"release {public.read_text()}")
    verify = ["ssh-keygen", "-Y", "verify", "-f", str(signers), "-I", "release", "-n", SIGNED, "-s", f"{file}.sig"]
    for content, code in ((file.read_bytes(), 0), (b"changed", 255)):
        assert subprocess.run(verify, input=content, capture_output=True, check=False).returncode == code
    signers.unlink()


@pytest.mark.timeout(600)
def test_a_release_is_built_twice_alike_and_can_be_checked(clone: Path, tmp_path: Path) -> None:
    rejected = release(clone, "9.8.7", "--check")
    assert rejected.returncode == 1
    assert "pyproject.toml has version" in rejected.stderr
    (clone / "new").write_text("x")
    assert "files are not committed" in release(clone, "9.8.7").stderr
    (clone / "new").unlink()

    assert "pyproject.toml names" in release(clone, "9.8.7", "--repository", "https://example.com/other").stderr

    key, image = tmp_path / "key", f"sha256:{'0' * 64}"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    done = release(clone, "9.8.7", "--sign", str(key), "--image-digest", image, "--repository", repository())
    assert done.returncode == 0, done.stderr
    assert "git tag --sign v9.8.7" in done.stdout
    dist = clone / "dist"
    wheel, sdist = "tetrapod_apiserver-9.8.7-py3-none-any.whl", "tetrapod_apiserver-9.8.7.tar.gz"
    bill = "tetrapod_apiserver-9.8.7.cdx.json"
    listed = {wheel, sdist, bill, "tetrapod-9.8.7.tgz", "NOTES.md"}
    assert {path.name for path in dist.iterdir()} == {*listed, "SHA256SUMS", "SHA256SUMS.sig"}
    lines = (line.partition("  ") for line in (dist / "SHA256SUMS").read_text().splitlines())
    sums = {name: checksum for checksum, _, name in lines}
    assert sums == {name: digest(dist / name) for name in listed}
    check_signature(dist / "SHA256SUMS", key.with_suffix(".pub"))
    components = json.loads((dist / bill).read_text())["components"]
    assert {"cryptography", "protobuf", "uvloop"} <= {component["name"] for component in components}
    with tarfile.open(dist / "tetrapod-9.8.7.tgz") as chart:
        member = chart.extractfile("tetrapod/Chart.yaml")
        assert member is not None
        assert re.search(r'^appVersion: "?9\.8\.7"?$', member.read().decode(), re.MULTILINE)
        member = chart.extractfile("tetrapod/values.yaml")
        assert member is not None
        assert yaml.safe_load(member.read())["image"]["digest"] == image
    assert re.search(r"^## 9\.8\.7 \(\d{4}-\d\d-\d\d\)$", (clone / "CHANGELOG.md").read_text(), re.MULTILINE)

    commit(clone)
    assert release(clone, "9.8.7", "--check").returncode == 0
    assert not subprocess.run(["git", "status", "--porcelain"], cwd=clone, capture_output=True, check=True).stdout
