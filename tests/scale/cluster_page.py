"""The part of docs/reference/scale.md about clusters of N nodes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from scale.forms import TITLES
from scale.model import Model, fit
from scale.objectives import CALLS, DELIVERY, LISTS, MUTATIONS, READS, Objective, broken, worst
from scale.page import Row, table
from scale.results import Latency, Run
from support.line_plot import Series, line_plot

_MB: Final = 1_000_000


def draw(runs: Sequence[Run]) -> dict[str, str]:
    """Return the plots by the names of their files."""
    return {name: line_plot(title, "nodes", _series(runs, value)) for name, (title, value) in _PLOTS.items()}


def sections(runs: Sequence[Run]) -> str:
    """Return a section for each size."""
    return "".join(_section(list(group)) for _, group in itertools.groupby(runs, key=lambda run: run.nodes))


def plots() -> str:
    """Return the links to the plots."""
    return "".join(f"![{title}](../images/{name})\n\n" for name, (title, _) in _PLOTS.items())


def models(runs: Sequence[Run]) -> str:
    """Return the section about sizes that were not measured; empty if no server has two sizes."""
    found = fit(runs)
    if not found:
        return ""
    return (
        "## By the number of nodes\n\n"
        "Lines of least squares through the CPU time and the memory of the runs below. They say what a size between or "
        "somewhat beyond\nthe measured ones takes; at 5,000 nodes they are a guess.\n\n"
        f"{table('figure', found, _MODEL)}\n"
    )


_MODEL: Final[Sequence[Row[Model]]] = (
    ("cores without nodes", lambda model: f"{model.cpu.fixed:.2f}"),
    ("cores for each 100 nodes", lambda model: f"{100 * model.cpu.each:.3f}"),
    ("memory without nodes, MB", lambda model: f"{model.memory.fixed / _MB:,.0f}"),
    ("memory for each 100 nodes, MB", lambda model: f"{100 * model.memory.each / _MB:,.0f}"),
    ("nodes that one core serves", lambda model: f"{model.nodes_of_a_core():,.0f}"),
    ("cores at 5,000 nodes", lambda model: f"{model.cpu.at(5000):.1f}"),
    ("memory at 5,000 nodes, MB", lambda model: f"{model.memory.at(5000) / _MB:,.0f}"),
)


def _series(runs: Sequence[Run], value: Callable[[Run], float | None]) -> list[Series]:
    found = []
    for form, title in TITLES.items():
        points = [(float(run.nodes), value(run)) for run in runs if run.form == form]
        found.append(Series(title, [(nodes, y) for nodes, y in points if y is not None]))
    return [series for series in found if series.points]


def _p99(objective: Objective) -> Callable[[Run], float | None]:
    def of(run: Run) -> float | None:
        call = worst(run.client, objective)
        return None if call is None else call.p99_ms

    return of


_PLOTS: Final[Mapping[str, tuple[str, Callable[[Run], float | None]]]] = {
    "scale-writes.svg": ("99th percentile of the slowest kind of write of one object, ms", _p99(MUTATIONS)),
    "scale-reads.svg": ("99th percentile of the slowest kind of read of one object, ms", _p99(READS)),
    "scale-lists.svg": ("99th percentile of the slowest kind of list, ms", _p99(LISTS)),
    "scale-delivery.svg": (
        "99th percentile of the delivery of watch events, ms",
        lambda run: None if run.delivery is None else run.delivery.p99_ms,
    ),
    "scale-memory.svg": ("memory of the server, MB (without etcd)", lambda run: run.use.memory / _MB),
    "scale-cpu.svg": ("CPU of the server, cores (without etcd)", lambda run: run.use.cpu),
}


def _section(runs: Sequence[Run]) -> str:
    first = runs[0]
    return (
        f"## {first.nodes:,} nodes, {first.pods:,} pods\n\n"
        f"{first.watches:,} watches; {first.churn:g} pods created and deleted a second. "
        "99th percentiles in milliseconds, as the clients saw them:\n"
        "of the slowest call with at least 100 requests.\n\n"
        f"{table('figure', runs, _rows())}\n"
        "Number of requests, median and 99th percentile in milliseconds of each call, at the clients:\n\n"
        f"{table('call', runs, _calls(runs))}\n"
    )


def _rows() -> list[Row[Run]]:
    rows: list[Row[Run]] = [
        (f"{objective.title} (≤ {objective.official:,.0f})", _cell(_p99(objective))) for objective in CALLS
    ]
    return [
        *rows,
        (
            f"{DELIVERY.title} (≤ {DELIVERY.official:,.0f})",
            _cell(lambda run: None if run.delivery is None else run.delivery.p99_ms),
        ),
        ("start of a pod, p99", _cell(lambda run: None if run.startup is None else run.startup.p99_ms)),
        ("requests a second", lambda run: f"{run.rate:,.0f}"),
        ("failed requests", _failed),
        ("given up by the load generator", lambda run: f"{run.skipped:,}"),
        ("watches that listed again", lambda run: f"{run.relists:,}"),
        ("writes whose event never came", lambda run: f"{run.undelivered:,}"),
        ("CPU of the server, cores", lambda run: f"{run.use.cpu:.2f}"),
        ("CPU of etcd, cores", lambda run: "in the server" if run.store is None else f"{run.store.cpu:.2f}"),
        ("CPU of the load generator, cores", lambda run: f"{run.load_cpu:.2f}"),
        ("memory of the server, MB", lambda run: f"{run.use.memory / _MB:,.0f}"),
        (
            "memory of etcd, MB",
            lambda run: "in the server" if run.store is None else f"{run.store.memory / _MB:,.0f}",
        ),
        ("growth of the server's memory, MB an hour", lambda run: f"{run.use.slope / _MB:+,.0f}"),
        ("filled in, s", lambda run: f"{run.filled:,.0f}"),
        ("requests sent late by, p99 ms", lambda run: f"{run.lag_ms:,.0f}"),
        ("objectives held", lambda run: "; ".join(broken(run)) or "yes"),
        ("measured, s", lambda run: f"{run.seconds:,.0f}"),
        ("Python", lambda run: run.python),
        ("commit, date", lambda run: f"{run.commit}, {run.date}"),
    ]


def _cell(value: Callable[[Run], float | None]) -> Callable[[Run], str]:
    def of(run: Run) -> str:
        found = value(run)
        return "none" if found is None else f"{found:,.0f}"

    return of


def _failed(run: Run) -> str:
    return f"{sum(call.failed for call in run.client):,} of {sum(call.count for call in run.client):,}"


def _calls(runs: Sequence[Run]) -> list[Row[Run]]:
    return [(name, _call(name)) for name in sorted({call.name for run in runs for call in run.client})]


def _call(name: str) -> Callable[[Run], str]:
    def of(run: Run) -> str:
        found: Latency | None = next((call for call in run.client if call.name == name), None)
        return "" if found is None else f"{found.count:,}; {found.p50_ms:,.1f}; {found.p99_ms:,.1f}"

    return of
