"""Models of the cost of a cluster of N nodes: lines through the runs, for sizes that were not measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scale.results import Run


@dataclass(frozen=True)
class Line:
    """The line y = fixed + each * x of least squares."""

    fixed: float
    each: float

    def at(self, x: float) -> float:
        return self.fixed + self.each * x


@dataclass(frozen=True)
class Model:
    """The costs of a server: cores and bytes by the number of nodes."""

    form: str
    cpu: Line
    memory: Line

    def nodes_of_a_core(self) -> float:
        """Return how many nodes one core serves; 0 if it serves none, and infinite if more nodes cost nothing more."""
        return max(0.0, (1 - self.cpu.fixed) / self.cpu.each) if self.cpu.each > 0 else float("inf")


def fit(runs: Sequence[Run]) -> list[Model]:
    """Return a model of each server that was measured at two sizes or more."""
    models = []
    for form in dict.fromkeys(run.form for run in runs):
        measured = [run for run in runs if run.form == form]
        if len({run.nodes for run in measured}) > 1:
            cpu = line_through([(run.nodes, run.use.cpu) for run in measured])
            memory = line_through([(run.nodes, run.use.memory) for run in measured])
            models.append(Model(form, cpu, memory))
    return models


def line_through(points: Sequence[tuple[float, float]]) -> Line:
    """Return the line of least squares; a level one if all points have the same abscissa."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    each = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
    return Line(mean_y - each * mean_x, each)
