"""`make bench`: measure, and write docs/reference/benchmarks.md.

`make bench ARGS='--only get,list'` measures a part and prints it.

With KUBE_APISERVER each form of Tetrapod is also measured next to kube-apiserver, alternating every second (and
kube-apiserver alone, with `--real`). `--beside CHECKOUT` measures next to another source tree only, which shows the
cost of a change; `--beside-python PYTHON` next to the same tree, or that of `--beside`, under another interpreter. With
`--profile`, py-spy shows what the time is spent on. With `--instructions`, valgrind counts the instructions of each
work instead, in one process; that works on a busy machine too.
"""

from __future__ import annotations

import argparse
import compileall
import datetime
import os
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench import asgi, h2load, instructions, plots, profiles, wrk
from bench.instructions import PODS, Counted
from bench.measuring import Measured, Measuring, Plan
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


def main() -> int:
    exit_on_sigterm()
    arguments = _arguments()
    if arguments.plots:
        plots.write(OUT.read_text())
        return 0
    if arguments.instructions and not instructions.available():
        print("bench needs valgrind: apt-get install valgrind", file=sys.stderr)
        return 2
    if not arguments.instructions and not wrk.available():
        print("bench needs wrk: apt-get install wrk", file=sys.stderr)
        return 2
    if arguments.profile and not profiles.available():
        print("bench needs py-spy: pip install py-spy", file=sys.stderr)
        return 2
    if arguments.h2load and not h2load.available():
        print("bench needs h2load: apt-get install nghttp2-client", file=sys.stderr)
        return 2
    begun = time.monotonic()
    # Compile all modules, as the image build does: without bytecode each start would compile 700 files.
    compileall.compile_dir(str(SERVICES), quiet=1)
    only = frozenset(filter(None, arguments.only.split(",")))
    plan = Plan(
        only=only, pairs=max(2, arguments.pairs), http2=arguments.http2 or arguments.h2load, h2load=arguments.h2load
    )
    if plan.http2:
        wrk.http2load()
    if arguments.quick:
        plan = replace(plan, crds=300, rounds=1, events=100)
    results: dict[str, Measured] = {}
    other = _other(arguments)
    with tempfile.TemporaryDirectory(prefix="tetrapod-bench-") as name:
        directory = Path(name)
        pki = write_pki(directory / "pki", ["localhost", "things.bench.svc"])
        with (
            asgi.running("hello", *pki.serving, directory) as hello,
            asgi.running("aggregated", *pki.serving, directory) as aggregated,
        ):
            fresh = partial(tempfile.mkdtemp, dir=directory)
            servers = hello, aggregated
            if arguments.instructions:
                ours = Counted(Path(fresh()))
                theirs = None if other is None else Counted(Path(fresh()), other)
                instructions.compare(ours, theirs, replace(plan, pods=PODS), servers, pki.ca, directory)
                return 0
            if other is not None:
                for form in _forms(arguments):
                    measure(form(Path(fresh())), form(Path(fresh()), other), plan, servers, pki.ca, directory)
                return 0
            if arguments.profile:
                _profile([form(Path(fresh())) for form in _forms(arguments)], plan, servers, pki.ca, directory)
                return 0
            real = bool(os.environ.get("KUBE_APISERVER"))
            for form in [*_forms(arguments), *([Real] if real and arguments.real else ())]:
                target = form(Path(fresh()))
                results[target.key] = Measuring(target, plan, servers, pki.ca, directory).run()
            for form in _forms(arguments) if real else ():
                target = form(Path(fresh()))
                results[target.key].beside = measure(target, Real(Path(fresh())), plan, servers, pki.ca, directory)
    _publish(render(results, plan), plan, arguments)
    print(f"{time.monotonic() - begun:.0f} s; above the goal: {_above(results)}", file=sys.stderr)
    return 0


def _profile(
    targets: list[Target], plan: Plan, servers: tuple[asgi.Asgi, asgi.Asgi], ca: Path, directory: Path
) -> None:
    found = {target.title: profiles.measure(target, plan, servers, ca, directory) for target in targets}
    text = profiles.page(found, datetime.date.today().isoformat(), commit(("docs/reference/profiles.md",)))
    if plan.only:
        print(text)
    else:
        profiles.OUT.write_text(text)


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
