"""Tests that requirements.lock matches pyproject.toml (`make lock` writes it)."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def name_of(requirement: str) -> str:
    """Return the normalized name, as PyPI compares names (PEP 503)."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def locked(file: str) -> dict[str, str]:
    """Return the versions by name; each must have hashes."""
    entries = re.split(r"\n(?=\S)", (ROOT / file).read_text().strip())
    assert all("--hash=sha256:" in entry for entry in entries)
    return {name_of(entry): entry.split("==")[1].split()[0] for entry in entries}


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        ("requirements.lock", PROJECT["project"]["dependencies"]),
        ("requirements-build.lock", PROJECT["build-system"]["requires"]),
    ],
)
def test_every_requirement_is_locked_in_a_version_that_it_permits(file: str, wanted: list[str]) -> None:
    found = locked(file)
    for requirement in wanted:
        version = found.get(name_of(requirement))
        assert version is not None, f"{requirement} is not in {file}: make lock"
        assert Requirement(requirement).specifier.contains(version), f"{requirement} is {version} in {file}: make lock"


def test_every_locked_package_is_required() -> None:
    """Required by the project, or by another requirement."""
    found = locked("requirements.lock")
    needed = {name_of(requirement) for requirement in PROJECT["project"]["dependencies"]}
    todo = list(needed)
    while todo:
        try:
            more = metadata.requires(todo.pop()) or []
        except metadata.PackageNotFoundError:
            continue  # for another platform or Python version
        fresh = {name_of(requirement) for requirement in more} & set(found) - needed
        needed |= fresh
        todo += fresh
    assert set(found) <= needed, f"{set(found) - needed} is locked for nothing: make lock"
