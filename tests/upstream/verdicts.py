"""Decide which tests cannot apply to a server that is not kube-apiserver, and why."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from upstream.output import Outcome
from upstream.packages import Package

_FILE: Final = Path(__file__).parent / "verdicts.toml"
_HOOK: Final = "not applicable: "


@dataclass(frozen=True)
class Rules:
    """The rules of verdicts.toml, in their order: patterns of a package and a test, and the reason."""

    rules: tuple[tuple[re.Pattern[str], re.Pattern[str], str], ...]

    @staticmethod
    def load() -> Rules:
        """Read the file."""
        entries = tomllib.loads(_FILE.read_text())["rule"]
        return Rules(tuple((re.compile(e["package"]), re.compile(e["test"]), e["reason"]) for e in entries))

    def not_applicable(self, package: Package, name: str, outcome: Outcome) -> str | None:
        """Return the reason, or None if the result of the test counts. A test that passed always counts."""
        if outcome.state == "passed":
            return None
        if _HOOK in outcome.message:
            return outcome.message.partition(_HOOK)[2]
        for of_package, of_test, reason in self.rules:
            if of_package.fullmatch(package.name) and of_test.search(name):
                return reason
        return None
