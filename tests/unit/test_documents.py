"""ARCHITECTURE.md and CONTRIBUTING.md name what is there: files, folders, and a reason for each dependency."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def named(document: str) -> set[str]:
    """What stands in backticks or parentheses and looks like a place in the tree."""
    text = (ROOT / document).read_text()
    found = re.findall(r"`([A-Za-z_][\w./*-]*)`", text) + re.findall(r"\(([a-z_]+(?:/[a-z_]+)+(?:\.py)?)[,)]", text)
    return {place.rstrip("/") for place in found if "/" in place or re.search(r"\.(py|sh|txt|toml|lock)$", place)}


@pytest.fixture(scope="module")
def places() -> set[str]:
    inside = (path for folder in ("services", "tests", "tools", "docs") for path in (ROOT / folder).rglob("*"))
    return {f"/{path.relative_to(ROOT)}" for path in (*ROOT.iterdir(), *inside)}


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_place_that_is_named_is_there(document: str, places: set[str]) -> None:
    assert not {name for name in named(document) if not any(fnmatch(place, f"*/{name}") for place in places)}


def test_every_dependency_has_its_reason_and_no_other_has() -> None:
    lines = (ROOT / "CONTRIBUTING.md").read_text().splitlines()
    told = [line.split("|")[1].replace("(build only)", "").split(",") for line in lines if line.startswith("| ")][1:]
    extras = PROJECT["project"].get("optional-dependencies", {}).values()
    wanted = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"], *(each for extra in extras for each in extra)]
    assert {name.strip() for names in told for name in names} == {re.split(r"[=<>\[]", each)[0] for each in wanted} - {"hatchling"}
