"""`make bench ARGS=--profile`: what a server's CPU time is spent on in each work, by py-spy.

py-spy samples the Python stacks of the server's processes while a work runs. A sample belongs to the first class of
`_CLASSES` that one of its frames belongs to, searched from the innermost frame on. The time of a C function counts for
the Python function that called it. The event loop, TLS and the system calls of sockets are C functions that no Python
function calls: they are one class.

py-spy does not stop the processes. Where it stops them, a thread mostly stops at the end of a system call, and system
calls then seem to take several times as long as they do. They are over-counted without that too: reading the thread's
CPU time at most every 2 ms, which takes 2.4 µs, was 8 to 15 per cent of the samples of some works.
"""

from __future__ import annotations

import collections
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench.asgi import Asgi
from bench.measuring import Measuring, Plan
from bench.targets import Target
from bench.works import WORKS

OUT: Final = Path(__file__).parents[2] / "docs" / "reference" / "profiles.md"
_SECONDS: Final = 5.0
_RATE: Final = 300
"""Samples of a process in a second."""
_IDLE: Final = "_worker (concurrent/futures/thread.py"
"""Begins the innermost frame of a thread that waits for work."""
_CLASSES: Final = (
    ("event loop, TLS, sockets", r"\((?:tetrapod/(?:apps|cli)|asyncio|uvloop|uvicorn|click)/"),
    ("HTTP", r"\(tetrapod/generic/http2?/"),
    ("fairness", r"\(tetrapod/generic/(?:flowcontrol|scheduling)/"),
    ("authentication, authorization", r"\(tetrapod/(?:generic/auth\w+|auth)/"),
    ("audit, metrics, traces", r"\(tetrapod/generic/(?:audit|metrics|observability)/"),
    ("other filters", r"\(tetrapod/generic/filters/"),
    ("admission", r"\(tetrapod/(?:generic|core)/admission/|\(tetrapod/core/(?:quota|podsecurity)/"),
    ("managed fields, patches", r"\(tetrapod/machinery/(?:fieldmanager|patch)/"),
    ("validation, defaults", r"\(tetrapod/(?:core/\w+|machinery/(?:schema|cel)|extensions/custom)/"),
    ("decoding, encoding", r"\(tetrapod/machinery/"),
    ("store, watch cache", r"\(tetrapod/generic/(?:storage|rpc|client)/"),
    ("handlers, registry", r"\(tetrapod/"),
)
_PATTERNS: Final = [(name, re.compile(pattern)) for name, pattern in _CLASSES]
_OTHER: Final = "other"

Shares = Mapping[str, float]


def available() -> bool:
    """Return whether py-spy is installed."""
    return _program() is not None


def _program() -> str | None:
    return shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")


def class_of(stack: Sequence[str]) -> str:
    """Return the class of a sample.

    Args:
        stack: the frames, the innermost last.
    """
    for frame in reversed(stack):
        for name, pattern in _PATTERNS:
            if pattern.search(frame):
                return name
    return _OTHER


def shares_of(samples: str) -> collections.Counter[str]:
    """Return the number of samples by class, from py-spy's raw format: `FRAME;FRAME COUNT` in each line."""
    found: collections.Counter[str] = collections.Counter()
    for line in samples.splitlines():
        text, _, count = line.rpartition(" ")
        stack = text.split(";")
        if not stack[-1].startswith(_IDLE):
            found[class_of(stack)] += int(count)
    return found


def measure(target: Target, plan: Plan, servers: tuple[Asgi, Asgi], ca: Path, directory: Path) -> dict[str, Shares]:
    """Return the share of each class by work."""
    measuring = Measuring(target, replace(plan, seconds=_SECONDS + 2), servers, ca, directory)
    found: dict[str, Shares] = {}
    try:
        measuring.begin()
        for work in WORKS:
            if not plan.wants(work.key):
                continue
            once = measuring.ready_for(work)
            found[work.key] = _profile(target, once, directory)
            told = sorted(found[work.key].items(), key=lambda item: -item[1])
            print(f"  {work.key}: {', '.join(f'{name} {share:.0%}' for name, share in told[:6])}", file=sys.stderr)
    finally:
        target.close()
    return found


def _profile(target: Target, once: Callable[[], object], directory: Path) -> Shares:
    """Sample the processes of a target while a work runs again and again."""
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            once()

    thread = threading.Thread(target=work)
    thread.start()
    total: collections.Counter[str] = collections.Counter()
    try:
        outputs = [directory / f"profile-{pid}.raw" for pid in target.pids]
        with ExitStack() as stack:
            for pid, output in zip(target.pids, outputs, strict=True):
                argv = [
                    _program() or "py-spy",
                    "record",
                    f"--duration={_SECONDS:.0f}",
                    f"--rate={_RATE}",
                    "--nonblocking",
                ]
                argv += ["--format=raw", f"--output={output}", f"--pid={pid}"]
                stack.enter_context(subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for output in outputs:
            total += shares_of(output.read_text())
    finally:
        ended.set()
        thread.join()
    samples = total.total()
    return {name: count / samples for name, count in total.items()}


def page(results: Mapping[str, Mapping[str, Shares]], date: str, commit: str) -> str:
    """Return docs/reference/profiles.md.

    Args:
        results: the shares by class, by work, by the title of the target.
        date: the day of the measurement.
        commit: the commit that was measured.
    """
    lines = [
        "# Where the CPU time goes",
        "",
        "This page is for developers who want to make Tetrapod cheaper, and for readers of",
        "[benchmarks.md](benchmarks.md) who ask what its figures consist of. `make bench ARGS=--profile` writes it"
        f" ({date}, commit {commit}). Do not edit it.",
        "",
        "The figures are per cent of the CPU time of all processes of the server, by samples of py-spy. C functions",
        "count for the Python function that called them: TLS and the system calls of a response count for HTTP.",
        "`tests/bench/profiles.py` has the classes.",
        "",
        "py-spy counts system calls several times too often. Most of the column *fairness* is one of them, the reading",
        "of a thread's CPU time. With a clock that costs nothing instead, a GET took as much CPU time: 0.95 ± 0.08 in",
        "four services, and 1.07 ± 0.15 in one process. Count instructions before changing a function because of this",
        "page.",
        "",
    ]
    for title, works in results.items():
        names = [name for name, _ in _CLASSES if any(shares.get(name, 0) >= 0.005 for shares in works.values())]
        lines += [f"## {title}", "", f"| work | {' | '.join(names)} | {_OTHER} |"]
        lines += [f"|---|{'--:|' * (len(names) + 1)}"]
        for work in WORKS:
            if work.key in works:
                cells = [f"{works[work.key].get(name, 0):.0%}".rstrip("%") for name in (*names, _OTHER)]
                lines.append(f"| {work.title} | {' | '.join('' if cell == '0' else cell for cell in cells)} |")
        lines.append("")
    return "\n".join(lines)
