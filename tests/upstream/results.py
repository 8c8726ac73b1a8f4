"""The record of each package, in results/. One file each, so that parts of the suites can be run on their own."""

from __future__ import annotations

import json
import time
from collections import Counter
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

    A test with subtests is not counted, unless it failed by itself. `partly` has the tests of which something failed or
    did not finish, with the number of their subtests that passed: these tests can run again on their own.
    """

    commit: str
    date: str
    seconds: int
    passed: int
    failed: dict[str, str] = field(default_factory=dict)
    not_applicable: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    unfinished: dict[str, str] = field(default_factory=dict)
    partly: dict[str, int] = field(default_factory=dict)

    def unsuccessful(self) -> set[str]:
        """Return the tests of which something failed or did not finish, without subtests."""
        return {_test(name) for name in (*self.failed, *self.unfinished)}

    def repeatable(self) -> bool:
        """Return whether the unsuccessful tests can run on their own. Older records do not tell what of them passed."""
        return self.unsuccessful() <= self.partly.keys()

    def updated(self, newer: Result) -> Result:
        """Return this result with that of a later run of its unsuccessful tests."""
        again = self.unsuccessful()

        def kept(found: dict[str, str]) -> dict[str, str]:
            return {name: text for name, text in found.items() if _test(name) not in again}

        return Result(
            commit=newer.commit,
            date=newer.date,
            seconds=self.seconds + newer.seconds,
            passed=self.passed - sum(self.partly[name] for name in again) + newer.passed,
            failed=kept(self.failed) | newer.failed,
            not_applicable=kept(self.not_applicable) | newer.not_applicable,
            skipped=kept(self.skipped) | newer.skipped,
            unfinished=kept(self.unfinished) | newer.unfinished,
            partly=newer.partly,
        )


def _test(name: str) -> str:
    """Return the test to which a subtest belongs."""
    return name.partition("/")[0]


@dataclass(frozen=True)
class Raw:
    """The outcomes of a package's tests as the test program printed them."""

    outcomes: Mapping[str, Outcome]
    seconds: int

    def judged(self, package: Package, rules: Rules, commit: str) -> Result:
        """Sort the outcomes."""
        passed = self._passed()
        result = Result(commit, time.strftime("%Y-%m-%d"), self.seconds, sum(passed.values()))
        for name, outcome in sorted(self._counted().items()):
            reason = rules.not_applicable(package, name, outcome)
            if reason is not None:
                result.not_applicable[name] = reason
            elif outcome.state != "passed":
                {"failed": result.failed, "skipped": result.skipped, "unfinished": result.unfinished}[outcome.state][
                    name
                ] = outcome.message
        result.partly.update({test: passed[test] for test in sorted(result.unsuccessful())})
        return result

    def _passed(self) -> Counter[str]:
        """Return how much of each test has passed."""
        return Counter(_test(name) for name, outcome in self._counted().items() if outcome.state == "passed")

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
