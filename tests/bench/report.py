"""docs/BENCHMARKS.md out of what was measured."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence

from bench.measuring import Measured, Plan, Rate
from bench.notes import NOTES
from bench.works import QUANTITIES, WORKS, Work

_HEAD = """# Benchmarks

Written by `make bench` ({when}, {cores} cores, Python {python}). Do not edit: notes are in `tests/bench/notes.py`.

Machines here are shared and change their speed by the hour, so what counts is **CPU of the server's processes in multiples of
`hello`**: a raw ASGI answer of 1 kB on stock uvicorn (httptools, uvloop) over TLS, measured before and after each work in the same minute
(here {hello:.0f} µs); of three rounds of each work the one in the middle is shown. etcd's CPU and memory are not counted. Load comes
from wrk, one thread, 16 connections, TLS, a static bearer token of a user in `system:masters`; watches from a client of the bench's own.
*kube-apiserver* is what v1.37.1 with etcd 3.6.8 needed on such a machine, in the same multiples; *of it* is ours as a share of that.
"""

_BESIDE = """*Beside it* is the share that counts, where it was measured: both servers up in the same minutes, each loaded for a second in
its turn; of {pairs} pairs of seconds the middle ratio of their CPU for a request, and where half of them lie.
"""


def render(results: dict[str, Measured], plan: Plan) -> str:
    hellos = sorted(rate.hello for measured in results.values() for rate in measured.rates.values()) or [0.0]
    parts = [
        _HEAD.format(
            when=time.strftime("%Y-%m-%d"),
            cores=os.cpu_count(),
            python=platform.python_version(),
            hello=hellos[len(hellos) // 2] * 1e6,
        )
    ]
    real = results.get("real")
    if any(measured.beside for measured in results.values()):
        parts.append(_BESIDE.format(pairs=plan.pairs))
    for key, measured in results.items():
        parts.append(f"\n## {measured.title}\n")
        if "*" in measured.missing:
            parts.append(f"Not measured{' to the end' if measured.rates else ''}: {_inline(measured.missing['*'])}\n")
        if not measured.rates and not measured.quantities:
            continue
        parts += _rates(key, measured, plan)
        parts += _quantities(key, measured, real if real is not measured else None, plan)
        parts += _notes(key, measured)
    return "\n".join(parts)


def _rates(key: str, measured: Measured, plan: Plan) -> list[str]:
    head = ["work", "a second", "p50 ms", "p99 ms", "CPU µs", "× hello", "kube-apiserver", "of it"]
    head += [*(["beside it"] if measured.beside else []), "goal", "met"]
    lines = [_row(head), _row(["---"] * len(head))]
    for work in WORKS:
        if not plan.wants(work.key):
            continue
        rate = measured.rates.get(work.key)
        if rate is None:
            reason = measured.missing.get(work.key, measured.missing.get("*", ""))
            lines.append(_row([work.title, f"not measured: {_inline(reason)}", *[""] * (len(head) - 2)]))
            continue
        cells = [work.title, *_cells(rate), _number(work.real), f"{rate.multiple / work.real:.2f}"]
        if measured.beside:
            share = measured.beside.get(work.key)
            cells.append(f"{share.median:.2f} ({share.low:.2f} to {share.high:.2f})" if share else "")
        lines.append(_row([*cells, *_goal(key, work, rate)]))
    return [*lines, ""]


def _cells(rate: Rate) -> list[str]:
    failed = f" ({rate.failed} failed)" if rate.failed else ""
    return [
        _number(rate.per_second) + failed,
        f"{rate.p50_ms:.2f}" if rate.p50_ms else "none ended",  # a round in which no request came to its end
        f"{rate.p99_ms:.2f}" if rate.p99_ms else "none ended",
        _number(rate.cpu * 1e6),
        _number(rate.multiple),
    ]


def _goal(key: str, work: Work, rate: Rate) -> list[str]:
    if not work.goal or key == "real":
        return ["", ""]
    return [f"≤ {_number(work.goal)}", "yes" if rate.multiple <= work.goal else "**no**"]


def _quantities(key: str, measured: Measured, real: Measured | None, plan: Plan) -> list[str]:
    lines = [_row(["", "", "kube-apiserver", "goal", "met"]), _row(["---"] * 5)]
    for quantity in QUANTITIES:
        value = measured.quantities.get(quantity.key)
        if not plan.wants(quantity.key):
            continue
        if value is None:
            if (reason := measured.missing.get(quantity.key)) is not None:
                lines.append(_row([quantity.title, f"not measured: {_inline(reason)}", "", "", ""]))
            continue
        goal = quantity.goals.get(key, 0)
        theirs = real.quantities.get(quantity.key, 0) if real else quantity.real
        lines.append(
            _row(
                [
                    quantity.title,
                    f"{_number(value)} {quantity.unit}",
                    f"{_number(theirs)} {quantity.unit}" if theirs else "",
                    f"≤ {goal:g} {quantity.unit}" if goal else "",
                    ("yes" if value <= goal else "**no**") if goal else "",
                ]
            )
        )
    return [*lines, ""]


def missed(key: str, measured: Measured) -> list[str]:
    """Works and quantities above their goals."""
    rates = [w.key for w in WORKS if key != "real" and w.goal and w.key in measured.rates and measured.rates[w.key].multiple > w.goal]
    return rates + [q.key for q in QUANTITIES if key in q.goals and measured.quantities.get(q.key, 0) > q.goals[key]]


def _notes(key: str, measured: Measured) -> list[str]:
    lines = []
    for name in missed(key, measured):
        title = next(x.title for x in (*WORKS, *QUANTITIES) if x.key == name)
        lines.append(f"- {title}: {NOTES.get((key, name), 'above the goal; not explained yet.')}")
    return [*lines, ""] if lines else []


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _inline(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
