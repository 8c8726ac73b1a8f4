"""`make scale`: measure how large a cluster servers hold, and write docs/reference/scale.md with its plots.

Examples:
    make scale ARGS='cluster --nodes 100'
    make scale ARGS='cluster --nodes 100,500 --forms sqlite,kube-apiserver'   (KUBE_APISERVER: the path of its binary)
    make scale ARGS='store --sizes 300000,1000000'
    make scale ARGS=render     write the page from the stored results
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from bench.client import Rejected
from bench.targets import NotStarted, Target
from scale import cluster, definitions, deletion, kwok, largest, report, results, soak, store, storm, watches
from scale.forms import FORMS
from scale.generator import LoadFailed
from scale.results import Result
from support.termination import exit_on_sigterm

_RUNS: Final = {
    "largest": (largest, "the largest cluster that holds the objectives; the size is the seconds of each run", "60"),
    "store": (store, "a start over a store of many small objects", "300000"),
    "watches": (watches, "many idle watches", "20000"),
    "storm": (storm, "many informers, whose server restarts", "2000"),
    "deletion": (deletion, "all objects of a namespace, deleted at once", "50000"),
    "definitions": (definitions, "many definitions of custom resources", "5000"),
    "kwok": (kwok, "the pods of so many nodes that kwok plays, with upstream's controllers and scheduler", "100"),
    "soak": (soak, "the load of a cluster of so many nodes for an hour", "20"),
}
"""The runs other than a cluster's by their keys: the module, help, default sizes."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scale", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    runs = parser.add_subparsers(dest="run", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--forms", default="sqlite", help=f"servers, comma-separated: {', '.join(FORMS)} (%(default)s)")
    common.add_argument("--flag", action="append", default=[], help="a further flag of each server, such as --v=2")
    common.add_argument("--no-write", action="store_true", help="print the results, and store none")
    one = runs.add_parser("cluster", parents=[common], help="the load of a cluster of N nodes")
    one.add_argument("--nodes", default="100", help="sizes, comma-separated (%(default)s)")
    one.add_argument("--pods-per-node", type=int, default=30, help="(%(default)s)")
    one.add_argument("--churn", type=float, default=10, help="pods created and deleted a second (%(default)s)")
    one.add_argument("--seconds", type=float, default=300, help="length of the measured part (%(default)s)")
    one.add_argument("load", nargs="*", help="after --: further flags of the load generator")
    for run, (_, text, sizes) in _RUNS.items():
        one = runs.add_parser(run, parents=[common], help=text)
        one.add_argument("--sizes", default=sizes, help="comma-separated (%(default)s)")
    runs.add_parser("render", help="measure nothing: write the page from the stored results")
    return parser.parse_args()


def main() -> int:
    """Make the runs that the arguments name, and return the exit code: 1 if one was not finished."""
    exit_on_sigterm()
    arguments = _arguments()
    if arguments.run == "render":
        report.write()
        return 0
    done = [_run(form, arguments, measure) for measure in _measures(arguments) for form in arguments.forms.split(",")]
    return 0 if all(done) else 1


def _measures(arguments: argparse.Namespace) -> list[Callable[[str, Target, Path], Result]]:
    """Return a function for each size, which measures a server."""
    if arguments.run == "cluster":
        sizes = [
            cluster.Size(int(nodes), arguments.pods_per_node, arguments.churn, arguments.seconds)
            for nodes in arguments.nodes.split(",")
        ]
        return [partial(_cluster, size, arguments.load) for size in sizes]
    return [partial(_sized, arguments.run, int(size)) for size in arguments.sizes.split(",")]


def _cluster(size: cluster.Size, load: list[str], form: str, target: Target, directory: Path) -> Result:
    return cluster.run(form, target, size, directory, load)


def _sized(run: str, size: int, form: str, target: Target, directory: Path) -> Result:
    result: Result = _RUNS[run][0].run(form, target, size, directory)
    return result


def _run(form: str, arguments: argparse.Namespace, measure: Callable[[str, Target, Path], Result]) -> bool:
    """Measure a server, store and print the result, and return whether it was finished."""
    if form == results.KUBE_APISERVER and not os.environ.get("KUBE_APISERVER"):
        print("KUBE_APISERVER is not set: kube-apiserver is not measured", file=sys.stderr)
        return False
    directory = Path(tempfile.mkdtemp(prefix=f"scale-{form}-"))
    print(f"{form}, files in {directory}", file=sys.stderr, flush=True)
    target = FORMS[form](directory)
    target.flags = arguments.flag
    try:
        result = measure(form, target, directory)
    except (LoadFailed, NotStarted, Rejected, OSError, subprocess.SubprocessError) as error:
        print(f"{form}: not measured: {error}", file=sys.stderr)
        return False
    finally:
        target.close()
    print(report.tables([result]), flush=True)
    if not arguments.no_write:
        results.write(result)
        report.write()
    return True


sys.exit(main())
