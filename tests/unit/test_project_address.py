"""The address of the repository, which pyproject.toml and other places name, and the tags of images."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
REPOSITORY = URLS["Repository"]
OWNER, NAME = REPOSITORY.split("/")[-2:]


_IMAGE = re.compile(r"(?:ARG BASE=|image: \S+:-|BASE: \S+:-)([\w./-]+):([\w.-]+)")


def test_images_of_others_have_one_version() -> None:
    """No floating tag such as 3.12-slim. The images that are built here have the tag `latest`."""
    text = (ROOT / "deploy/Dockerfile").read_text() + (ROOT / "compose.yaml").read_text()
    images = [(name, tag) for name, tag in _IMAGE.findall(text) if name != "tetrapod"]
    values = yaml.safe_load((ROOT / "charts/tetrapod/values.yaml").read_text())
    images += [(values[part]["image"]["repository"], values[part]["image"]["tag"]) for part in ("etcd", "redis")]
    assert len(images) >= 7
    for name, tag in images:
        assert re.match(r"v?\d+\.\d+\.\d+(-|$)", tag), f"{name}:{tag}"


def test_all_urls_of_the_package_belong_to_the_repository() -> None:
    assert {URLS["Changelog"], URLS["Issues"]} == {f"{REPOSITORY}/blob/main/CHANGELOG.md", f"{REPOSITORY}/issues"}
    assert URLS["Documentation"] == f"https://{OWNER}.github.io/{NAME}/"


def test_chart_site_and_owners_name_the_repository() -> None:
    chart = yaml.safe_load((ROOT / "charts/tetrapod/Chart.yaml").read_text())
    assert (chart["home"], chart["sources"]) == (REPOSITORY, [REPOSITORY])
    site = (ROOT / "mkdocs.yml").read_text()
    assert f"\nsite_url: {URLS['Documentation']}\n" in site
    assert f"\nrepo_url: {REPOSITORY}\n" in site
    assert f"@{OWNER}/" in (ROOT / ".github/CODEOWNERS").read_text()
