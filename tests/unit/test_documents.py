"""The documents name existing files, link to existing pages and headings, and give a reason for each dependency."""

from __future__ import annotations

import html
import re
import tomllib
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

from tetrapod.auth.rbac.aggregation import AggregationController
from tetrapod.core import controllers
from tetrapod.generic.authentication.union import UnionAuthenticator
from tetrapod.generic.authorization.union import AlwaysAllow
from tetrapod.generic.filters.chain import ChainConfig, ordered_filters
from tetrapod.generic.server.controllers import KNOWN, OFF_BY_DEFAULT

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


MARKDOWN = sorted(
    path
    for path in (
        *ROOT.glob("*.md"),
        *(page for folder in ("docs", "deploy", "charts", "tests") for page in (ROOT / folder).rglob("*.md")),
    )
    if "node_modules" not in path.parts
)
_CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^()\s]+)\)")


def anchors(text: str) -> set[str]:
    """Return the fragments that GitHub generates for the headings of a Markdown text."""
    headings = re.findall(
        r"^#+ +(.+?) *$", re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE
    )
    found: set[str] = set()
    for heading in headings:
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")
        repetitions = (f"{slug}-{number}" if number else slug for number in range(len(headings)))
        found.add(next(name for name in repetitions if name not in found))
    return found


def broken_links(page: Path) -> list[str]:
    """Return the relative links of a page whose file, or whose heading in that file, does not exist."""
    broken = []
    for link in _LINK.findall(_CODE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        place, _, fragment = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        in_markdown = target.suffix == ".md" and target.is_file()
        if not target.exists() or (fragment and in_markdown and fragment not in anchors(target.read_text())):
            broken.append(link)
    return broken


def named(document: str) -> set[str]:
    """Return the texts in backticks or parentheses that look like paths of the repository."""
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


@pytest.mark.parametrize("page", sorted((ROOT / "docs/explanation").glob("*.md")), ids=lambda page: str(page.name))
def test_every_module_that_an_explanation_names_is_there(page: Path, places: set[str]) -> None:
    names = set(re.findall(r"`([\w./-]+\.(?:py|sh))`", page.read_text()))
    assert not {name for name in names if not any(place.endswith(f"/{name}") for place in places)}


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_to_existing_files_and_headings(page: Path) -> None:
    assert not broken_links(page)


def test_the_tests_that_security_names_exist() -> None:
    file, checked = "", 0
    for path, name in re.findall(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`", (ROOT / "SECURITY.md").read_text()):
        file = path or file
        if name:
            checked += 1
            assert f"def {name}(" in (ROOT / file).read_text(), f"{file}::{name}"
    assert checked


def test_the_index_of_docs_links_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / link).resolve() for link in _LINK.findall(index.read_text())}
    assert not {path for path in (ROOT / "docs").rglob("*.md") if path != index} - linked


def test_the_navigation_of_the_site_has_every_page() -> None:
    named = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")} - named == set()


def test_broken_links_are_detected(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b` c\n[ok](#a-b-c) [ok](page.md#a-b-c) [no](#d) [no](other.md) [web](https://example.com) "
        "`[code](x.md)`\n"
    )
    assert broken_links(page) == ["#d", "other.md"]


def test_every_dependency_has_its_reason_and_no_other_has() -> None:
    section = (ROOT / "CONTRIBUTING.md").read_text().split("\n## Why each dependency\n")[1].split("\n## ")[0]
    lines = section.splitlines()
    rows = [line.split("|")[1].replace("(build only)", "").split(",") for line in lines if line.startswith("| ")][1:]
    extras = PROJECT["project"].get("optional-dependencies", {}).values()
    wanted = [
        *PROJECT["project"]["dependencies"],
        *PROJECT["build-system"]["requires"],
        *(each for extra in extras for each in extra),
    ]
    assert {name.strip() for names in rows for name in names} == {re.split(r"[=<>\[]", each)[0] for each in wanted} - {
        "hatchling"
    }


def test_documents_install_our_distribution_and_not_the_project_called_tetrapod_on_pypi() -> None:
    assert PROJECT["project"]["name"] == "tetrapod-apiserver"
    places = [
        path
        for suffix in ("md", "toml", "yaml", "py")
        for path in (*ROOT.glob(f"*.{suffix}"), *(ROOT / "docs").rglob(f"*.{suffix}"))
    ]
    places += [path for folder in ("deploy", "charts") for path in (ROOT / folder).rglob("*") if path.is_file()]
    installs = re.compile(r"\b(?:pip|pipx|uv|uvx) (?:install|run|tool)[^\n`]*? tetrapod(?:\s|`|\[|=|$)", re.MULTILINE)
    assert not [str(path) for path in places if installs.search(path.read_text(errors="replace"))]


def test_the_picture_of_the_terminal_shows_the_commands_of_the_readme() -> None:
    block = re.search(r"```\nexport KUBECONFIG=.*\n((?:.+\n)+)```", (ROOT / "README.md").read_text())
    assert block is not None
    picture = html.unescape((ROOT / "docs/images/quick-start.svg").read_text()).replace("\xa0", " ")
    assert [line for line in block[1].splitlines() if line not in picture] == []
    assert "http" not in picture.replace("http://www.w3.org", "").replace("https://127.0.0.1", "")


def test_the_cluster_guide_lists_every_controller_that_a_controller_manager_has_too() -> None:
    text = (ROOT / "docs/how-to/cluster.md").read_text()
    listed = re.findall(r"^\| `([a-z-]+-controller)` \|", text, re.MULTILINE)
    modules = [import_module(module.name) for module in iter_modules(controllers.__path__, f"{controllers.__name__}.")]
    names = {getattr(item, "name", None) for module in modules for item in vars(module).values()}
    assert set(listed) == {AggregationController.name, *(names & KNOWN)}
    assert listed == sorted(listed)
    off = re.findall(r"^\| `([a-z-]+)` \| off \|$", text, re.MULTILINE)
    assert set(off) == OFF_BY_DEFAULT & set(listed)


def test_the_page_about_requests_explains_every_filter_in_the_order_of_the_chain() -> None:
    page = (ROOT / "docs/explanation/request-flow.md").read_text()
    rows = re.findall(r"^\| \[([\w-]+)\]\(\S+/filters/\w+\.py\) \|", page, re.MULTILINE)
    special = re.findall(r"^- `([\w-]+)` ", page.partition("Some filters have no counterpart")[2], re.MULTILINE)
    assert special == ["fair-scheduling", "audit-findings", "maxinflight"]
    config = ChainConfig(UnionAuthenticator(()), AlwaysAllow())
    chain = [name for name, _ in ordered_filters(config) if name]
    replaced = ["priorityandfairness" if name == "maxinflight" else name for name in chain]
    assert rows == [name for name in replaced if name not in special]
