"""Count the instructions that the processes of a server execute for each request, with valgrind's callgrind.

The counts of two runs of the same code differ by less than 1 %, and by up to 3 % on a busy machine. CPU times of lists
differ by up to 9 % between two starts, because the objects then lie elsewhere in memory. Instructions are not time:
valgrind's processor has no AES-NI, so that TLS counts more, and the cost of cache misses does not count.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench.asgi import Asgi
from bench.client import Connection, Rejected
from bench.measuring import Measuring, Plan
from bench.objects import LISTED
from bench.targets import Embedded, Four, Target
from bench.works import WORKS, Work
from bench.wrk import Load

CONNECTIONS: Final = 4
PODS: Final = 1_500
REQUESTS: Final = 200
REQUESTS_OF_LISTS: Final = 20
ROUNDS: Final = 3
"""The least count of these rounds is taken, because what a server does beside the requests only adds to it."""
_LAUNCHER: Final = Path(__file__).parent / "scripts" / "launch_counted.py"
_TOTAL: Final = re.compile(r"^(?:totals|summary): (\d+)", re.MULTILINE)


def available() -> bool:
    """Return whether valgrind is installed."""
    return shutil.which("valgrind") is not None


class Counted(Target):
    """A target whose processes run under callgrind, which counts while a work is measured."""

    ready_within = 600.0

    def _spawn(self, name: str, argv: list[str]) -> None:
        arguments = argv[argv.index("tetrapod.cli.main") + 1 :]
        file = self._data / f"callgrind.{name}"
        valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={file}"]
        super()._spawn(name, [*valgrind, argv[0], str(_LAUNCHER), *arguments])

    def switch_on(self) -> None:
        """Start counting. Until then the server runs about ten times faster."""
        self._control("--instr=on")

    def reset(self) -> None:
        """Set the counts to zero."""
        self._control("--zero")

    def take(self) -> dict[str, int]:
        """Return the instructions that each process has executed since `reset`."""
        before = set(self._data.glob("callgrind.*"))
        self._control("--dump")
        dumps = set(self._data.glob("callgrind.*")) - before
        counts = {dump.suffixes[0].removeprefix("."): _total(dump) for dump in dumps}
        return {name: counts[name] for name in self.processes}

    def _control(self, command: str) -> None:
        subprocess.run(["callgrind_control", command, *map(str, self.pids)], check=True, capture_output=True)


class CountedEmbedded(Counted, Embedded):
    """`tetrapod up` under callgrind."""


class CountedFour(Counted, Four):
    """The four `tetrapod serve` under callgrind."""


COUNTED: Final[Mapping[type[Target], type[Counted]]] = {Embedded: CountedEmbedded, Four: CountedFour}
"""The forms of Tetrapod whose instructions can be counted."""


def _total(dump: Path) -> int:
    total = _TOTAL.search(dump.read_text())
    if total is None:
        raise Rejected(f"callgrind wrote no total into {dump.name}")
    return int(total[1])


def compare(
    ours: Counted, theirs: Counted | None, plan: Plan, servers: tuple[Asgi, Asgi], ca: Path, directory: Path
) -> None:
    """Print the instructions of each work that the plan selects, and their ratio to those of another tree.

    With several processes, the instructions of each are printed too.
    """
    both = [Measuring(target, plan, servers, ca, directory) for target in (ours, theirs) if target is not None]
    works = [work for work in WORKS if work.load is not None and plan.wants(work.key)]
    counts = []
    for measuring in both:
        try:
            measuring.begin()
            assert isinstance(measuring.target, Counted)
            counts.append({work.key: asyncio.run(_count(measuring, measuring.target, work)) for work in works})
        finally:
            measuring.target.close()
    for key, count in counts[0].items():
        total = sum(count.values())
        if theirs is not None:
            other = counts[1][key]
            beside = f": {total / sum(other.values()):.3f} of it, beside {_thousands(other)}"
        else:
            beside = ""
        print(f"  {key}: {_thousands(count)} thousand instructions{beside}", file=sys.stderr, flush=True)


def _thousands(count: Mapping[str, float]) -> str:
    """Return the sum in thousands, and those of each process if there are several."""
    total = f"{sum(count.values()) / 1e3:,.0f}"
    if len(count) == 1:
        return total
    return f"{total} ({', '.join(f'{name} {value / 1e3:,.0f}' for name, value in count.items())})"


async def _count(measuring: Measuring, target: Counted, work: Work) -> dict[str, float]:
    """Return the instructions of one request of a work, for each process."""
    assert work.load is not None
    if work.key == "proxy":
        await measuring.register()
    connections = [await measuring.client.connection() for _ in range(CONNECTIONS)]
    requests = REQUESTS_OF_LISTS if f"/namespaces/{LISTED}/" in work.load.path else REQUESTS
    await _send(connections, work.load, requests, 0)  # caches are warm then
    target.switch_on()
    counts = []
    for number in range(1, ROUNDS + 1):
        target.reset()
        await _send(connections, work.load, requests, requests * number)
        counts.append(target.take())
    for connection in connections:
        connection.close()
    return {name: min(count[name] for count in counts) / requests for name in target.processes}


async def _send(connections: list[Connection], load: Load, count: int, first: int) -> None:
    """Send `count` requests, with the numbers from `first` on, over the connections in parallel."""
    numbers = iter(range(first, first + count))

    async def work(connection: Connection) -> None:
        for number in numbers:
            path, body = (_filled(text, number, load.modulus) for text in (load.path, load.body))
            content = body.encode() if body else None
            answer = await connection.request(load.method, path, content, load.content_type, load.accept, load.encoding)
            if answer.status not in (200, 201):
                raise Rejected(f"{load.method} {path}: {answer.status} {answer.body[:200].decode(errors='replace')}")

    await asyncio.gather(*map(work, connections))


def _filled(text: str, number: int, modulus: int) -> str:
    """Replace the marks of a path or body, as scripts/write.lua does."""
    return text.replace("@N@", str(number)).replace("@M@", str(number % modulus if modulus else 0))
