"""Update docs/reference/stalls.md with the results of some cases, and keep the figures of all others.

A whole run takes hours. The figures that were measured last stand in the page, whose first paragraphs say when that was
and are written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Final

from stall.case import WAITS, Case
from stall.cases import CASES, MODULES
from stall.measure import EXPONENT, GROWTH, Result
from stall.report import TITLES, cells

_COLUMNS: Final = 4
"""Columns of each server."""
_SECTION: Final = re.compile(r"(?ms)^## (\w+)\n\n((?:\|.*?)?)(?=\n+## |\n*\Z)")
_GROUPS: Final = re.compile(r"(?m)^\| group \|.*\n(?:\|.*\n)*")
_HEAD: Final = "| case | bytes " + "".join(f"| {title}: wait | CPU | growth | memory " for title in TITLES.values())
_Row = dict[str, list[str]]
"""The cells of each form, and those of the size, called `bytes`."""


def updated(page: str, results: Mapping[str, Sequence[Result]]) -> str:
    """Return the page with the figures of `results`, by form. Cases that no longer exist are left out."""
    rows = {name: row for _, table in _SECTION.findall(page) for name, row in _parsed(table)}
    for form, found in results.items():
        for result in found:
            row = rows.setdefault(result.case, {})
            row[form] = cells(form, result)
            if form != "kube-apiserver" or "bytes" not in row:
                row["bytes"] = [f"{result.largest.size:,}"]

    def section(match: re.Match[str]) -> str:
        title = match[1]
        table = _summary(rows) if title == "Summary" else _table([c for c in CASES if c.who == title.lower()], rows)
        return f"## {title}\n\n{table}"

    return _GROUPS.sub(lambda _: _groups(rows), _SECTION.sub(section, page).rstrip("\n") + "\n")


def _parsed(table: str) -> list[tuple[str, _Row]]:
    """Return the rows of a table of cases by their names; nothing for another table."""
    if not table.startswith("| case |"):
        return []
    rows = []
    for line in table.splitlines()[2:]:
        name, size, *values = (cell.strip() for cell in line.strip().strip("|").split("|"))
        values += [""] * (_COLUMNS * len(TITLES) - len(values))
        row = {form: values[_COLUMNS * i :][:_COLUMNS] for i, form in enumerate(TITLES)}
        rows.append((name, {"bytes": [size], **{form: given for form, given in row.items() if any(given)}}))
    return rows


def _table(cases: Sequence[Case], rows: Mapping[str, _Row]) -> str:
    lines = [_HEAD + "|", "|---|---" + "|---" * _COLUMNS * len(TITLES) + "|"]
    for case in cases:
        if (row := rows.get(case.name)) is not None:
            values = [cell for form in TITLES for cell in row.get(form, [""] * _COLUMNS)]
            lines.append(f"| {case.name} | {row['bytes'][0]} | {' | '.join(values)} |")
    return "\n".join(lines)


def _summary(rows: Mapping[str, _Row]) -> str:
    lines = ["| server | cases | fail | longest wait: anonymous, user, editor (ms) |", "|---|---|---|---|"]
    for form, title in TITLES.items():
        measured = [(case.who, rows[case.name][form][0]) for case in CASES if form in rows.get(case.name, {})]
        waits = [
            max((int(wait.strip("*")) for who, wait in measured if who == asked), default=0)
            for asked in WAITS
            if asked != "admin"
        ]
        failed = sum(_fails(case.who, form, rows[case.name][form]) for case in CASES if form in rows.get(case.name, {}))
        lines.append(f"| {title} | {len(measured)} | {failed} | {', '.join(map(str, waits))} |")
    return "\n".join(lines)


def _fails(who: str, form: str, figures: Sequence[str]) -> bool:
    """Return whether a row says that its case fails. Only the servers of this project have such waits in bold."""
    wait, _, exponent, memory = figures
    if form != "kube-apiserver" or who == "admin":
        return wait.startswith("**")
    return int(wait) > WAITS[who] * 1000 or float(exponent or 0) > EXPONENT or int(memory) * 1_000_000 > GROWTH


def _groups(rows: Mapping[str, _Row]) -> str:
    lines = ["| group | cases | " + " | ".join(TITLES.values()) + " |", "|---" * (2 + len(TITLES)) + "|"]
    for module in MODULES:
        counts = [sum(form in rows.get(case.name, {}) for case in module.CASES) for form in TITLES]
        lines.append(f"| `{_name(module)}` | {len(module.CASES)} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines) + "\n"


def _name(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]
