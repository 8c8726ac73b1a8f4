"""The figures of a run as Markdown tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from soak.samples import Sample
from soak.verdict import Growth, growing_types

_MIB: Final = 1 << 20
_HEAD: Final = (
    "| process | memory MiB | bytes a request | MiB a minute | requests | frames | tasks | "
    "connections | files | verdict |"
)
_RULE: Final = "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run. `samples` are the judged ones, by process; `statuses` counts responses by status."""

    form: str
    seconds: float
    requests: int
    statuses: Mapping[int, int]
    missing: Sequence[str]
    samples: Mapping[str, Sequence[Sample]]
    growths: Mapping[str, Sequence[Growth]]

    @property
    def failures(self) -> list[str]:
        """Return what grew more than it may, and what the traffic did not reach."""
        grown = [
            (
                f"{process}: {growth.name} from {growth.first:.0f} to {growth.last:.0f} ({growth.grown:+.0f}, "
                f"at most {growth.most:.0f})"
            )
            for process, each in self.growths.items()
            for growth in each
            if growth.failed
        ]
        return [*grown, *self.missing]


def render(result: Result) -> str:
    """Return the tables of a run: growth from the first to the last judged sample."""
    lines = [f"### {result.form}: {result.requests} requests in {result.seconds:.0f} s", "", _HEAD, _RULE]
    lines += [_row(process, result) for process in result.samples]
    lines += [
        "",
        "Responses by status: " + ", ".join(f"{status}: {count}" for status, count in sorted(result.statuses.items())),
    ]
    for process, samples in result.samples.items():
        types = ", ".join(f"{kind} +{count}" for kind, count in growing_types(samples))
        lines.append(f"Types that grew in {process}: {types or 'none'}")
    lines += [f"FAILED: {failure}" for failure in result.failures]
    return "\n".join(lines)


def _row(process: str, result: Result) -> str:
    samples = result.samples[process]
    memory, *others = result.growths[process]
    minutes = (samples[-1].seconds - samples[0].seconds) / 60
    cells = [
        process,
        f"{memory.first / _MIB:.1f} → {memory.last / _MIB:.1f}",
        f"{memory.grown / max(1, samples[-1].requests - samples[0].requests):.0f}",
        f"{memory.grown / _MIB / minutes:.2f}",
        *(f"{growth.first:.0f} → {growth.last:.0f}" for growth in others),
        "failed: " + ", ".join(growth.name for growth in (memory, *others) if growth.failed)
        if any(growth.failed for growth in (memory, *others))
        else "passed",
    ]
    return f"| {' | '.join(cells)} |"
