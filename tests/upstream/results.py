"""The record of each package, in results/. One file each, so that parts of the suites can be run on their own."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from upstream.output import Outcome
from upstream.packages import Package
from upstream.verdicts import Rules

DIRECTORY: Final = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Result:
    """The judged results of a package: the number of tests that passed, and the others with a message or reason.

    A test with subtests is not counted, unless it failed by itself.
    """

    commit: str
    date: str
    seconds: int
    passed: int
    failed: dict[str, str] = field(default_factory=dict)
    not_applicable: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    unfinished: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """The outcomes of a package's tests as the test program printed them."""

    outcomes: Mapping[str, Outcome]
    seconds: int

    def judged(self, package: Package, rules: Rules, commit: str) -> Result:
        """Sort the outcomes."""
        result = Result(commit, time.strftime("%Y-%m-%d"), self.seconds, self._passed())
        for name, outcome in sorted(self._counted().items()):
            reason = rules.not_applicable(package, name, outcome)
            if reason is not None:
                result.not_applicable[name] = reason
            elif outcome.state != "passed":
                {"failed": result.failed, "skipped": result.skipped, "unfinished": result.unfinished}[outcome.state][
                    name
                ] = outcome.message
        return result

    def _passed(self) -> int:
        return sum(outcome.state == "passed" for outcome in self._counted().values())

    def _counted(self) -> dict[str, Outcome]:
        parents: dict[str, list[str]] = {}
        for name in self.outcomes:
            pieces = name.split("/")
            for length in range(1, len(pieces)):
                parents.setdefault("/".join(pieces[:length]), []).append(name)
        counted = {}
        for name, outcome in self.outcomes.items():
            below = [self.outcomes[child].state for child in parents.get(name, ())]
            if below and (outcome.state in ("passed", "skipped") or {"failed", "unfinished"} & set(below)):
                continue
            counted[name] = outcome
        return counted


def load(package: Package) -> Result | None:
    """Return the record of a package, or None if it has never run."""
    path = DIRECTORY / f"{package.file}.json"
    return Result(**json.loads(path.read_text())) if path.exists() else None


def save(package: Package, result: Result) -> None:
    """Record the result of a package."""
    DIRECTORY.mkdir(exist_ok=True)
    (DIRECTORY / f"{package.file}.json").write_text(json.dumps(asdict(result), indent=1, ensure_ascii=False) + "\n")
