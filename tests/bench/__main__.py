"""`make bench`: measure, and write docs/reference/benchmarks.md.

`make bench ARGS='--only get,list'` measures a part and prints it.

With KUBE_APISERVER each form of Tetrapod is also measured next to kube-apiserver, alternating every second (and
kube-apiserver alone, with `--real`). `--beside CHECKOUT` measures next to another source tree only, which shows the
cost of a change; `--beside-python PYTHON` next to the same tree, or that of `--beside`, under another interpreter. With
`--profile`, py-spy shows what the time is spent on. With `--instructions`, valgrind counts the instructions of each
work instead, for each process; that works on a busy machine too.
"""

from __future__ import annotations

import argparse
import compileall
import datetime
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench import asgi, h2load, instructions, plots, profiles, wrk
from bench.instructions import COUNTED, PODS
from bench.measuring import Measured, Measuring, Plan, Share
from bench.pairs import measure
from bench.report import missed, render
from bench.targets import Colocated, Embedded, Four, Program, Real, Target
from bench.works import QUANTITIES, WORKS
from support.server import SERVICES
from support.termination import exit_on_sigterm
from tetrapod.generic.certificates.pki import write_pki
from upstream.workspace import commit

OUT = Path(__file__).parents[2] / "docs" / "reference" / "benchmarks.md"


def _arguments() -> argparse.Namespace:
    names = ", ".join([*(w.key for w in WORKS), *dict.fromkeys(q.key.split("-")[0] for q in QUANTITIES)])
    parser = argparse.ArgumentParser(
        prog="bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", default="", help=f"measure these alone, comma-separated: {names}; prints, writes nothing"
    )
    parser.add_argument("--quick", action="store_true", help="shorter runs and fewer CRDs; prints, writes nothing")
    parser.add_argument(
        "--beside", type=Path, metavar="CHECKOUT", help="ours and that of another tree, second by second; prints"
    )
    parser.add_argument(
        "--beside-python",
        metavar="PYTHON",
        help="ours and that of another interpreter, which has Tetrapod's dependencies; prints",
    )
    parser.add_argument(
        "--instructions", action="store_true", help="count instructions with valgrind, also --beside; prints"
    )
    parser.add_argument(
        "--profile", action="store_true", help=f"sample what the CPU time is spent on, and write {profiles.OUT.name}"
    )
    parser.add_argument("--pairs", type=int, default=10, help="seconds of each, beside another server (%(default)s)")
    parser.add_argument("--real", action="store_true", help="measure kube-apiserver by itself too")
    parser.add_argument("--no-four", action="store_true", help="leave the four services out")
    parser.add_argument("--http2", action="store_true", help="send the works over HTTP/2; prints, writes nothing")
    parser.add_argument("--h2load", action="store_true", help="as --http2, with h2load for works without a body")
    parser.add_argument(
        "--unix-sockets", action="store_true", help="measure four services with Unix sockets between them too"
    )
    parser.add_argument("--no-embedded", action="store_true", help="leave the one process out")
    parser.add_argument("--plots", action="store_true", help=f"measure nothing: draw the plots of {OUT.name} again")
    parser.add_argument("--out", type=Path, help=f"where the table goes ({OUT.name} by default, for a whole run)")
    return parser.parse_args()


def _other(arguments: argparse.Namespace) -> Program | None:
    """Return the program to measure beside ours; None without `--beside` and `--beside-python`."""
    if arguments.beside is None and arguments.beside_python is None:
        return None
    services = SERVICES if arguments.beside is None else arguments.beside.resolve() / "services"
    return Program(services, arguments.beside_python or sys.executable)


def _forms(arguments: argparse.Namespace) -> list[type[Target]]:
    found: list[type[Target]] = []
    if not arguments.no_embedded:
        found.append(Embedded)
    if not arguments.no_four:
        found.append(Four)
    if arguments.unix_sockets:
        found.append(Colocated)
    return found


def _missing_tool(arguments: argparse.Namespace) -> str:
    """Return the tool that the measurement needs and the machine lacks, with the command that installs it; or ""."""
    if arguments.instructions and not instructions.available():
        return "valgrind: apt-get install valgrind"
    if not arguments.instructions and not wrk.available():
        return "wrk: apt-get install wrk"
    if arguments.profile and not profiles.available():
        return "py-spy: pip install py-spy"
    if arguments.h2load and not h2load.available():
        return "h2load: apt-get install nghttp2-client"
    return ""


def _plan(arguments: argparse.Namespace) -> Plan:
    plan = Plan(
        only=frozenset(filter(None, arguments.only.split(","))),
        pairs=max(2, arguments.pairs),
        http2=arguments.http2 or arguments.h2load,
        h2load=arguments.h2load,
    )
    return replace(plan, crds=300, rounds=1, events=100) if arguments.quick else plan


@dataclass(frozen=True)
class _Bench:
    """The surroundings of all measurements of a run.

    Attributes:
        plan: what is measured.
        servers: the ASGI server that answers "hello", and the aggregated API server behind the measured ones.
        ca: the CA of the aggregated API server.
        directory: the directory for the files of the measured servers.
        forms: the forms of Tetrapod to measure.
    """

    plan: Plan
    servers: tuple[asgi.Asgi, asgi.Asgi]
    ca: Path
    directory: Path
    forms: Sequence[type[Target]]

    def count_instructions(self, other: Program | None) -> None:
        """Print the instructions of each work in each form, and those of another program if there is one."""
        plan = replace(self.plan, pods=PODS)
        for form in self.forms:
            if counted := COUNTED.get(form):
                theirs = None if other is None else counted(self._fresh(), other)
                instructions.compare(counted(self._fresh()), theirs, plan, self.servers, self.ca, self.directory)

    def compare(self, other: Program) -> None:
        """Measure each form beside that of another program, and print the shares."""
        for form in self.forms:
            self._measure(form(self._fresh()), form(self._fresh(), other))

    def profile(self) -> None:
        """Print what each form spends its time on, or write the page if the plan has all works."""
        targets = [form(self._fresh()) for form in self.forms]
        found = {
            target.title: profiles.measure(target, self.plan, self.servers, self.ca, self.directory)
            for target in targets
        }
        text = profiles.page(found, datetime.date.today().isoformat(), commit(("docs/reference/profiles.md",)))
        if self.plan.only:
            print(text)
        else:
            profiles.OUT.write_text(text)

    def run(self, *, alone: bool) -> dict[str, Measured]:
        """Measure each form, and beside kube-apiserver if KUBE_APISERVER is set. Return the results by the form's key.

        Args:
            alone: whether kube-apiserver is also measured by itself.
        """
        real = bool(os.environ.get("KUBE_APISERVER"))
        results: dict[str, Measured] = {}
        for form in [*self.forms, *([Real] if real and alone else ())]:
            target = form(self._fresh())
            results[target.key] = Measuring(target, self.plan, self.servers, self.ca, self.directory).run()
        for form in self.forms if real else ():
            target = form(self._fresh())
            results[target.key].beside = self._measure(target, Real(self._fresh()))
        return results

    def _measure(self, ours: Target, theirs: Target) -> dict[str, Share]:
        return measure(ours, theirs, self.plan, self.servers, self.ca, self.directory)

    def _fresh(self) -> Path:
        """Return a new directory for the files of one server."""
        return Path(tempfile.mkdtemp(dir=self.directory))


def main() -> int:
    exit_on_sigterm()
    arguments = _arguments()
    if arguments.plots:
        plots.write(OUT.read_text())
        return 0
    if tool := _missing_tool(arguments):
        print(f"bench needs {tool}", file=sys.stderr)
        return 2
    begun = time.monotonic()
    # Compile all modules, as the image build does: without bytecode each start would compile 700 files.
    compileall.compile_dir(str(SERVICES), quiet=1)
    plan, other = _plan(arguments), _other(arguments)
    if plan.http2:
        wrk.http2load()
    with tempfile.TemporaryDirectory(prefix="tetrapod-bench-") as name:
        directory = Path(name)
        pki = write_pki(directory / "pki", ["localhost", "things.bench.svc"])
        with (
            asgi.running("hello", *pki.serving, directory) as hello,
            asgi.running("aggregated", *pki.serving, directory) as aggregated,
        ):
            bench = _Bench(plan, (hello, aggregated), pki.ca, directory, _forms(arguments))
            if arguments.instructions:
                bench.count_instructions(other)
                return 0
            if other is not None:
                bench.compare(other)
                return 0
            if arguments.profile:
                bench.profile()
                return 0
            results = bench.run(alone=arguments.real)
    _publish(render(results, plan), plan, arguments)
    print(f"{time.monotonic() - begun:.0f} s; above the goal: {_above(results)}", file=sys.stderr)
    return 0


def _publish(text: str, plan: Plan, arguments: argparse.Namespace) -> None:
    """Print the page, or write it. The page of a whole run also gets its plots."""
    whole = not (plan.only or plan.http2 or arguments.quick or arguments.no_four or arguments.no_embedded)
    out = arguments.out or (OUT if whole else None)
    if out is None:
        print(text)
        return
    out.parent.mkdir(exist_ok=True)
    out.write_text(text)
    if out == OUT:
        plots.write(text)


def _above(results: dict[str, Measured]) -> str:
    return (
        ", ".join(f"{key} {name}" for key, measured in results.items() for name in missed(key, measured)) or "nothing"
    )


if __name__ == "__main__":
    sys.exit(main())
