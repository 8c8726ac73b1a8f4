"""The record of runs of all specs of the suite, which shows how many passed in a row."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

from conformance import results
from conformance.results import Results

_NAME: Final = "whole-runs.json"


@dataclass(frozen=True)
class WholeRun:
    """A run of all specs.

    Args:
        form: the API server: one of `cluster.settings.FORMS`.
        commit: the commit of Tetrapod.
        date: the day, as YYYY-MM-DD.
        passed: the number of specs that passed.
        failed: the number of those that failed.
        not_run: the number of those that were not run.
    """

    form: str
    commit: str
    date: str
    passed: int
    failed: int = 0
    not_run: int = 0


def load() -> list[WholeRun]:
    """Return all runs, in the order in which they were made."""
    path = results.RECORDS / _NAME
    return [WholeRun(**entry) for entry in json.loads(path.read_text())] if path.exists() else []


def add(form: str, commit: str, date: str, outcomes: Results) -> None:
    """Record a run of all specs."""
    counts = [len(outcomes.of(state)) for state in ("passed", "failed", "not run")]
    runs = [*load(), WholeRun(form, commit, date, *counts)]
    lines = ",\n".join(json.dumps(asdict(run)) for run in runs)
    (results.RECORDS / _NAME).write_text(f"[\n{lines}\n]\n")
