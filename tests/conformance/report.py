"""Write docs/reference/conformance.md from the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from cluster.settings import FORMS, ROOT, VERSION
from conformance import whole_runs
from conformance.results import BEYOND_RECORD, Outcome, Results, load_left_out
from conformance.specs import BEYOND, Spec

_OUT: Final = ROOT / "docs" / "reference" / "conformance.md"
_STATES: Final = ("passed", "failed", "not run")
_TITLES: Final = {
    "one": "One process over SQLite",
    "four": "Four services over etcd",
    "stock": f"kube-apiserver v{VERSION} over etcd, for comparison",
}
_WIDTH: Final = 300

_HEAD: Final = f"""# Upstream's conformance suite

Written by `make conformance`. Do not edit.

This page is for users who want to know how far a cluster over Tetrapod behaves like one over kube-apiserver.

- The suite is that of Kubernetes v{VERSION}: all specs of `e2e.test` that are marked with `[Conformance]`.
- The cluster is that of `make cluster` ([how-to/cluster.md](../how-to/cluster.md)): two nodes with containerd 2.4,
  stock kubelets, kube-proxies, controller manager and scheduler v{VERSION}, and CoreDNS 1.15.
- The images of the suite are made from the Go programs in its modules and from Debian packages. A registry of the
  cluster serves them.

`make conformance` writes `e2e.log`, `junit_01.xml` and `product.yaml` into `.cache/conformance/FORM`: the files that
the CNCF's conformance programme asks for. [tests/README.md](../../tests/README.md) has its arguments.

"""

_BEYOND: Final = """## Beyond conformance

`make conformance ARGS=--beyond` runs specs of the groups that touch the API server and are not part of conformance.

"""


def write() -> None:
    """Write the page."""
    beyond = "\n".join(filter(None, [*map(_beyond, FORMS), _left_out()]))
    parts = [*map(_section, FORMS), *([f"{_BEYOND}{beyond}"] if beyond else [])]
    _OUT.write_text(_HEAD + "\n".join(parts))


def _section(form: str) -> str:
    results = Results.load(form)
    title = f"## {_TITLES[form]}\n\n"
    if not results.outcomes:
        return f"{title}The suite has not run in this form yet.\n"
    return title + _tables(results) + _whole_runs(form)


def _beyond(form: str) -> str:
    results = Results.load(f"{form}{BEYOND_RECORD}")
    missing = [sig for sig in BEYOND if sig not in {Spec(name).sig for name in results.outcomes}]
    note = f"\nNot run yet: the specs of {', '.join(missing)}.\n" if missing else ""
    return f"### {_TITLES[form]}\n\n{_tables(results, note)}" if results.outcomes else ""


def _tables(results: Results, note: str = "") -> str:
    """Return the tables of a record, with a note below the counts."""
    return "".join((_counts(results), note, _failures(results), _reasons(results)))


def _left_out() -> str:
    rows = "".join(f"| {reason} | {count:,} |\n" for reason, count in load_left_out().items())
    return f"### Left out\n\n| reason | specs |\n|---|--:|\n{rows}" if rows else ""


def _counts(results: Results) -> str:
    counts = Counter((Spec(name).sig, outcome.state) for name, outcome in results.outcomes.items())
    rows = [(sig, [counts[sig, state] for state in _STATES]) for sig in sorted({sig for sig, _ in counts})]
    rows.append(("**all**", [sum(column) for column in zip(*(row for _, row in rows), strict=True)]))
    text = "| SIG | passed | failed | not run |\n|---|--:|--:|--:|\n"
    text += "".join(f"| {sig} | {' | '.join(str(count or '') for count in row)} |\n" for sig, row in rows)
    runs = Counter((outcome.commit, outcome.date) for outcome in results.outcomes.values() if outcome.commit)
    lines = [f"{count} specs at commit {commit} on {date}" for (commit, date), count in sorted(runs.items())]
    return f"{text}\nRun: {'; '.join(lines)}.\n"


def _whole_runs(form: str) -> str:
    """Return a table of the runs of all specs in a form, the last one first; nothing without such runs."""
    rows = "".join(
        f"| {run.date} | {run.commit} | {run.passed} | {run.failed or ''} | {run.not_run or ''} |\n"
        for run in reversed(whole_runs.load())
        if run.form == form
    )
    head = "| date | commit | passed | failed | not run |\n|---|---|--:|--:|--:|\n"
    return f"\nRecorded runs of all specs:\n\n{head}{rows}" if rows else ""


def _failures(results: Results) -> str:
    return _table("Failed", "The suite gives this message for each spec.", "message", results.of("failed"))


def _reasons(results: Results) -> str:
    intro = "These specs did not run. The reason is the message of the suite, or that its time was over."
    return _table("Not run", intro, "reason", results.of("not run"))


def _table(title: str, intro: str, column: str, outcomes: Mapping[str, Outcome]) -> str:
    """Return a section with a row for each spec and its message; nothing without specs."""
    rows = "".join(f"| {_escaped(name)} | {_cell(outcome.message)} |\n" for name, outcome in sorted(outcomes.items()))
    return f"\n### {title}\n\n{intro}\n\n| spec | {column} |\n|---|---|\n{rows}" if rows else ""


def line(name: str, outcome: Outcome) -> str:
    """Return a line for the terminal."""
    return f"  {outcome.state.upper()} {name}\n      {outcome.message}"


def _escaped(text: str) -> str:
    return text.replace("|", "¦")


def _cell(text: str) -> str:
    """Return a message as the text of a cell: in code font, because it can contain any mark-up."""
    clean = _escaped(text).replace("`", "'")[:_WIDTH].strip()
    return f"`{clean}`" if clean else ""
