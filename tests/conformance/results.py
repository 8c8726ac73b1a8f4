"""The results of a form by spec, and their record in the repository."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from conformance.specs import Spec

RECORDS: Final = Path(__file__).parent / "results"
"""The directory of the records."""
_LEFT_OUT: Final = RECORDS / "left-out.json"
_NODE: Final = re.compile(r"^\[[A-Za-z]+\] ")  # ginkgo's kind of node in front of a name: [It]
_LINES: Final = 3
_OVER: Final = "A suite timeout occurred"
BEYOND_RECORD: Final = "-beyond"
"""Ends the name of a record of specs beyond conformance."""
NOT_REACHED: Final = "the time for the run was over"


@dataclass(frozen=True)
class Outcome:
    """The outcome of one spec.

    Args:
        state: `passed`, `failed` or `not run`.
        seconds: how long it took.
        message: why it failed, or why it was not run.
        commit: the commit of Tetrapod.
        date: the day, as YYYY-MM-DD.
    """

    state: str
    seconds: float = 0
    message: str = ""
    commit: str = ""
    date: str = ""


@dataclass
class Results:
    """The outcomes of the specs of the suite that have run, by their names."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)

    @classmethod
    def load(cls, name: str) -> Results:
        """Return a record, such as that of a form; empty results without it."""
        try:
            entries = json.loads(_path(name).read_text())
        except FileNotFoundError:
            return cls()
        return cls({name: Outcome(**entry) for name, entry in entries.items()})

    def save(self, name: str) -> None:
        """Write the record, one line for each spec."""
        entries = {spec: _without_defaults(outcome) for spec, outcome in sorted(self.outcomes.items())}
        lines = ",\n".join(f"{json.dumps(spec)}: {json.dumps(entry)}" for spec, entry in entries.items())
        RECORDS.mkdir(exist_ok=True)
        _path(name).write_text(f"{{\n{lines}\n}}\n")

    def of(self, state: str) -> dict[str, Outcome]:
        """Return the outcomes in a state."""
        return {name: outcome for name, outcome in self.outcomes.items() if outcome.state == state}


def save_left_out(reasons: Iterable[str]) -> None:
    """Record how many specs beyond conformance do not run, by the reason."""
    _LEFT_OUT.write_text(json.dumps(dict(Counter(reasons).most_common()), indent=1) + "\n")


def load_left_out() -> dict[str, int]:
    """Return how many specs beyond conformance do not run, by the reason."""
    counts: dict[str, int] = json.loads(_LEFT_OUT.read_text()) if _LEFT_OUT.exists() else {}
    return counts


def read(junit: Path, chosen: Iterable[Spec], commit: str, date: str) -> Results:
    """Return the outcomes of the chosen specs from a report of ginkgo.

    Args:
        junit: the report. If it is missing, ginkgo was ended, and no spec counts as run.
        chosen: the specs of the run.
        commit: the commit of Tetrapod.
        date: the day.
    """
    found = _cases(junit) if junit.exists() else {}
    results = Results()
    for spec in chosen:
        state, seconds, message = found.get(spec.name, ("not run", 0.0, NOT_REACHED))
        results.outcomes[spec.name] = Outcome(state, seconds, message, commit, date)
    return results


def _cases(junit: Path) -> dict[str, tuple[str, float, str]]:
    """Return the state, the seconds and the message of each spec in a report, by its name."""
    cases = {}
    for case in ElementTree.parse(junit).iter("testcase"):
        name = " ".join(_NODE.sub("", case.attrib["name"]).split())
        seconds = round(float(case.attrib.get("time", 0)), 1)
        failure = case.find("failure") if case.find("failure") is not None else case.find("error")
        skipped = case.find("skipped")
        if failure is not None:
            message = _message(failure)
            cases[name] = ("not run", 0.0, NOT_REACHED) if _OVER in message else ("failed", seconds, message)
        elif skipped is not None:
            if message := _message(skipped).removeprefix("skipped").removeprefix(" - ").strip():
                cases[name] = ("not run", seconds, message)
        else:
            cases[name] = ("passed", seconds, "")
    return cases


def _message(element: ElementTree.Element) -> str:
    text = element.attrib.get("message") or element.text or ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines[:_LINES])[:400]


def _without_defaults(outcome: Outcome) -> dict[str, object]:
    return {key: value for key, value in asdict(outcome).items() if value}


def _path(name: str) -> Path:
    return RECORDS / f"{name}.json"
