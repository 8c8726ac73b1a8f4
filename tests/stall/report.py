"""Write docs/reference/stalls.md from the measurements."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from stall.case import WAITS
from stall.cases import CASES
from stall.measure import EXPONENT, GROWTH, Result, failed

OUT: Final = Path(__file__).parents[2] / "docs" / "reference" / "stalls.md"
TITLES: Final = {"one": "one process", "four": "four services", "kube-apiserver": "kube-apiserver"}

_HEAD = """# Requests that could stall the server

Written by `make stall` ({when}, commit {commit}, {cores} cores, Python {python}). Do not edit.
It measured {measured} of {all} cases, at a load average of {load:.0f}. On a host with more load than cores, CPU times
and waits are longer than on an idle one.

This page is for operators who want to know what one user's request can cost all others, and for developers who change
how requests are handled. Each case is a request that grows with `n`. It is sent in sizes that double, up to the largest
that the server accepts. While the server handles it, another user reads an object and `/readyz` every 10 ms. The
columns of each server, over all sizes of a case:

- *wait*: the longest wait that the request caused, in milliseconds. It is the larger of two values: the other user's
  longest wait, {clock}, and the longest step or lag of an event loop by CPU time
  ([docs/reference/observability.md](observability.md)).
- *CPU*: seconds of all processes at the largest size.
- *growth*: the power of the size with which CPU time grows; empty for requests that are cheap at every size.
- *memory*: megabytes that the request leaves behind, after garbage collection. Caches and the pools of malloc grow with
  the first large requests and stay. If all sizes of a case leave more than {memory:.0f} MB, the column is therefore the
  mean of ten further requests, the least of up to three rounds.

`make stall ARGS=--http2` sends the cases that HTTP/2 can carry over HTTP/2, and copies of a request as streams of one
connection. It prints its figures. The short form among the tests does so for six cases.

A case fails, and is set in bold, if one of these holds. Requests of administrators are shown only.

- An anonymous or unprivileged user makes others wait for more than {user:.0f} ms.
- An administrator of a namespace (*editor*) makes others wait for more than {editor:.0f} ms.
- CPU time grows with a power of the size above {exponent}.
- More than {memory:.0f} MB of memory are kept.
"""


_CLOCKS: Final = {
    "wall": "less the time for which the kernel ran other programs",
    "cpu": "but at most the CPU time that the server used during it",
}


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f}"


def line(form: str, result: Result) -> str:
    """Return one line for the terminal."""
    last = result.largest
    exponent = f"n^{result.exponent:.1f}" if result.exponent else ""
    failures = "; ".join(result.failures())
    caused = max(sample.caused for sample in result.samples)
    return (
        f"{form:5} {result.who:9} {result.case:52} {last.size:8} B {last.status:3} wait "
        f"{_milliseconds(result.wait):>6} ms (step {_milliseconds(caused):>6} {last.where}) CPU {last.cpu:6.2f} s "
        f"{exponent:6} {result.grown / 1e6:6.1f} MB (peak "
        f"{max(sample.peak for sample in result.samples) / 1e6:.0f})  {failures}"
    )


def _commit() -> str:
    argv = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(argv, capture_output=True, text=True, cwd=OUT.parent, check=False).stdout.strip() or "unknown"


def cells(form: str, result: Result) -> list[str]:
    """Return the cells of a result: wait, CPU time, growth and memory. The wait of a case that fails is in bold."""
    exponent = f"{result.exponent:.1f}" if result.exponent else ""
    wait = _milliseconds(result.wait)
    if form != "kube-apiserver" and result.failures():
        wait = f"**{wait}**"
    return [wait, f"{result.largest.cpu:.2f}", exponent, f"{max(result.grown, 0) / 1e6:.0f}"]


def _cell(form: str, result: Result | None) -> str:
    return "| | | | " if result is None else f"| {' | '.join(cells(form, result))} "


def render(results: Mapping[str, Sequence[Result]], clock: str = "wall") -> str:
    """Return the document. `clock`: the one by which waits are judged."""
    head = _HEAD.format(
        clock=_CLOCKS[clock],
        measured=max(map(len, results.values())),
        all=len(CASES),
        load=os.getloadavg()[1],
        when=time.strftime("%Y-%m-%d"),
        commit=_commit(),
        cores=os.cpu_count(),
        python=platform.python_version(),
        user=WAITS["user"] * 1000,
        editor=WAITS["editor"] * 1000,
        exponent=EXPONENT,
        memory=GROWTH / 1e6,
    )
    parts = [
        head,
        "\n## Summary\n\n| server | cases | fail | longest wait: anonymous, user, editor (ms) |\n|---|---|---|---|\n",
    ]
    for form, found in results.items():
        waits = [max((r.wait for r in found if r.who == who), default=0.0) for who in ("anonymous", "user", "editor")]
        parts.append(
            f"| {TITLES[form]} | {len(found)} | {len(failed(found))} | {', '.join(map(_milliseconds, waits))} |\n"
        )
    parts += [f"\n## {who.capitalize()}\n\n{_table(who, results)}" for who in WAITS]
    return "".join(parts)


def _table(who: str, results: Mapping[str, Sequence[Result]]) -> str:
    by_form = {form: {result.case: result for result in found} for form, found in results.items()}
    cases = dict.fromkeys(result.case for found in results.values() for result in found if result.who == who)
    head = "| case | bytes " + "".join(f"| {TITLES[form]}: wait | CPU | growth | memory " for form in results) + "|\n"
    lines = [head, "|---|---" + "|---" * 4 * len(results) + "|\n"]
    for case in cases:
        found = [by_form[form].get(case) for form in results]
        size = max(result.largest.size for result in found if result is not None)
        row = "".join(_cell(form, result) for form, result in zip(results, found, strict=True))
        lines.append(f"| {case} | {size:,} {row}|\n")
    return "".join(lines)
