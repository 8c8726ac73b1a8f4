"""Writing of generated files, which overwrites nothing that a user may have written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Final

from tetrapod.scaffold.project import ProjectError

_IMPORT: Final = re.compile(r"^(?=.{121})from (\S+) import (\S+)$", re.MULTILINE)
"""A line that imports one name and has more than 120 characters."""


def render(template: str, values: Mapping[str, str]) -> str:
    """Return the text of a template with its placeholders replaced. Long imports are wrapped, as ruff wraps them.

    Args:
        template: the path below `templates/`, without the suffix `.tmpl`.
        values: the values of the placeholders, by name.
    """
    source = files("tetrapod.scaffold").joinpath("templates", f"{template}.tmpl").read_text(encoding="utf-8")
    text = Template(source).substitute(values)
    return _IMPORT.sub(r"from \1 import (\n    \2,\n)", text) if template.endswith(".py") else text


def write_new(directory: Path, contents: Mapping[str, str], replaced: Mapping[str, tuple[str, str]]) -> list[str]:
    """Write files, all or none of them, and return their paths.

    Args:
        directory: the directory of the project, created if it is missing.
        contents: the new files, by path relative to the directory.
        replaced: the files to replace, by path: the text that they must have now, and the new text.

    Raises:
        ProjectError: a new file exists already, or a file to replace has another text.
    """
    if existing := [path for path in contents if (directory / path).exists()]:
        raise ProjectError(f"not overwritten: {', '.join(existing)} in {directory}")
    for path, (expected, new) in replaced.items():
        if expected != new and _text(directory / path) != expected:
            raise ProjectError(
                f"{path} was changed by hand, and is not overwritten; "
                "move your changes to another file and restore it, or make the change by hand"
            )
    for path, text in {**contents, **{path: new for path, (_, new) in replaced.items()}}.items():
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return [*contents, *(path for path, (expected, new) in replaced.items() if expected != new)]


def _text(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.exists() else None
