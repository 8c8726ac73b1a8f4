"""The hook of mkdocs that lets pages of docs/ link to files outside docs/, as they do on GitHub.

A Markdown file outside docs/ that is linked becomes the page project/PATH; another file becomes the page source/PATH,
which shows its text; a folder becomes a list of its files. mkdocs logs a warning for a link to a file that does not
exist, which fails the strict build.
"""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = ROOT / "docs"
_CODE: Final = re.compile(r"(^ *```.*?^ *```$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"(\]\()([^()\s#]+)(#[^()\s]*)?(\))")
_LANGUAGES: Final = {".py": "python", ".sh": "sh", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".json": "json"}


def github_slug(text: str, separator: str) -> str:
    """Return the fragment that GitHub generates for a heading."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", separator)


@cache
def _tracked() -> frozenset[str]:
    """Return the paths of all files of the repository. A file that is not tracked is not published."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return frozenset(listed.stdout.splitlines())


def _uri(target: Path) -> str | None:
    """Return the page of a file or folder of the repository, or None if it is not in the repository.

    A picture in docs/ is returned as it is.
    """
    if not target.is_relative_to(ROOT):
        return None
    path = target.relative_to(ROOT).as_posix()
    if target.is_relative_to(DOCS) and target.suffix in (".md", ".png", ".svg"):
        return target.relative_to(DOCS).as_posix()
    if path in _tracked():
        return f"project/{path}" if target.suffix == ".md" else f"source/{path}.md"
    if any(each.startswith(f"{path}/") for each in _tracked()):
        return f"source/{path}/index.md"
    return None


def _origin(uri: str) -> Path:
    """Return the file or folder that a page shows."""
    kind, _, path = uri.partition("/")
    if kind == "project":
        return ROOT / path
    if kind == "source":
        return ROOT / (path.removesuffix("/index.md") if path.endswith("/index.md") else path.removesuffix(".md"))
    return DOCS / uri


def _rewrite(markdown: str, uri: str) -> tuple[str, set[str]]:
    """Return the text of a page with links between pages of the site, and the pages that it links to."""
    origin, pages = _origin(uri), set[str]()
    folder = origin if origin.is_dir() else origin.parent

    def link(match: re.Match[str]) -> str:
        before, place, fragment, after = match.groups()
        page = None if re.match(r"[a-z]+:", place) else _uri((folder / place).resolve())
        if page is None:
            return match[0]
        if page.endswith(".md"):
            pages.add(page)
        return f"{before}{os.path.relpath(page, os.path.dirname(uri) or '.')}{fragment or ''}{after}"

    parts = _CODE.split(markdown)
    return "".join(part if index % 2 else _LINK.sub(link, part) for index, part in enumerate(parts)), pages


def _text(uri: str) -> str:
    """Return the Markdown of a page outside docs/, with the links of its origin."""
    origin = _origin(uri)
    path = origin.relative_to(ROOT).as_posix()
    if uri.startswith("project/"):
        return origin.read_text()
    if origin.is_dir():
        children = sorted(
            {each.removeprefix(f"{path}/").split("/")[0] for each in _tracked() if each.startswith(f"{path}/")}
        )
        return f"# {path}\n\n" + "\n".join(f"- [{name}]({name})" for name in children)
    return f'# {path}\n\n````{_LANGUAGES.get(origin.suffix, "text")} linenums="1"\n{origin.read_text()}\n````\n'


def _listed(nav: Any) -> list[str]:
    """Return the pages that the navigation names."""
    if isinstance(nav, str):
        return [nav]
    return [page for child in (nav.values() if isinstance(nav, dict) else nav) for page in _listed(child)]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside docs/ that are in the navigation, or that a Markdown page links to."""
    waiting = [*_listed(config.nav), *(file.src_uri for file in files.documentation_pages())]
    known = set[str]()
    while waiting:
        uri = waiting.pop()
        if uri in known or not _origin(uri).exists():
            continue
        known.add(uri)
        outside = uri.startswith(("project/", "source/"))
        text = _text(uri) if outside else _origin(uri).read_text()
        if outside:
            files.append(File.generated(config, uri, content=text))
        if not uri.startswith("source/"):
            waiting += _rewrite(text, uri)[1]
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links of a page. The list of a folder links only to the files that other pages link to."""
    uri = page.file.src_uri
    text, pages = _rewrite(markdown, uri)
    if not uri.startswith("source/"):
        return text
    for missing in (each for each in pages if files.get_file_from_path(each) is None):
        target = re.escape(os.path.relpath(missing, os.path.dirname(uri)))
        text = re.sub(rf"\[([^]]*)\]\({target}\)", r"\1", text)
    return text
