"""Collect differences by signature, print each once, and write them as steps of a scenario."""

from __future__ import annotations

import collections
from pathlib import Path

import yaml

from differential.comparing import Difference


class Report:
    """The differences so far.

    Attributes:
        exchanges: the number of compared responses, by generator.
    """

    def __init__(self, out: Path | None = None) -> None:
        self.exchanges: collections.Counter[str] = collections.Counter()
        self.found: dict[str, Difference] = {}
        self.counts: collections.Counter[str] = collections.Counter()
        self._out = out

    def add(self, generator: str, difference: Difference | None) -> None:
        self.exchanges[generator] += 1
        if difference is None:
            return
        self.counts[difference.signature] += 1
        if difference.signature not in self.found:
            self.found[difference.signature] = difference
            print(described(difference), flush=True)
            if self._out is not None:
                with self._out.open("a", encoding="utf-8") as file:
                    file.write(f"{described(difference)}\n{as_step(difference)}\n")

    def summary(self) -> str:
        """Return the counts as lines."""
        lines = [f"{name}: {count} exchanges" for name, count in sorted(self.exchanges.items())]
        lines += [f"{count:6} {signature}" for signature, count in self.counts.most_common()]
        total = sum(self.counts.values())
        return "\n".join(
            [*lines, f"{len(self.found)} distinct differences in {total} of {self.exchanges.total()} exchanges"]
        )


def described(difference: Difference) -> str:
    """Return the request in short and the places that differ, as comments."""
    step = difference.step
    comments = [f"# {difference.signature}", f"#   {difference.origin}: {step['request']} {step.get('about', '')}"]
    return "\n".join([*comments, *(f"#   {line}" for line in (*difference.lines[:5], *difference.lines[5:][-1:]))])


def as_step(difference: Difference) -> str:
    """Return the request as a step of a scenario."""
    step = {key: value for key, value in difference.step.items() if key != "about"}
    return yaml.safe_dump([step], sort_keys=False, width=160, allow_unicode=True)
