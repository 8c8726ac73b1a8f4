"""`make conformance`: run upstream's conformance suite over Tetrapod, and write docs/reference/conformance.md.

It starts the cluster of `make cluster` with the images of the suite, and ends it. Specs that may run beside others do
so first, then the serial ones. With --beyond, specs of some groups run that are not part of conformance. With --sigs
only a part is run, and the records of the other parts are kept, so that the suite can run in parts. The exit code is 1
if a spec failed or was not run for lack of time. With RETRY=1, as in CI, the short form runs a spec again that fails.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cluster.commands import CommandError
from cluster.lifecycle import ClusterError, build, check_absent, down, up
from cluster.settings import FORMS, PROXIES, Paths
from cluster.steps import step
from conformance import report, whole_runs
from conformance.images import ConformanceImages
from conformance.product import write_product
from conformance.results import BEYOND_RECORD, NOT_REACHED, Results, read, save_left_out
from conformance.specs import Spec, beyond_specs, conformance_specs, focus, left_out, short_specs
from conformance.suite import OUTPUT, Run
from support.etcd import etcd_36
from support.termination import exit_on_sigterm
from upstream.workspace import commit

_WRITTEN: Final = ("tests/conformance/results", "docs/reference/conformance.md")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="conformance", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--form", choices=FORMS, default="one", help="the API server (default: one)")
    parser.add_argument(
        "--proxy", choices=PROXIES, default="stock", help="kube-proxy, or tetrapod proxy, which records nothing"
    )
    parser.add_argument("--beyond", action="store_true", help="the specs that are not part of conformance")
    parser.add_argument("--sigs", default="", help="only the specs of these groups, comma-separated")
    parser.add_argument("--match", default="", help="only the specs whose name contains this text")
    parser.add_argument("--again", action="store_true", help="only specs that have not passed by the record")
    parser.add_argument("--short", action="store_true", help="20 specs in a few minutes; records nothing")
    parser.add_argument("--processes", type=int, default=6, help="specs that run at once (default: 6)")
    parser.add_argument("--minutes", type=int, default=120, help="the limit for the specs (default: 120)")
    parser.add_argument("--keep", action="store_true", help="leave the cluster running afterwards")
    parser.add_argument("--render", action="store_true", help="only write the page from the records")
    return parser.parse_args()


def _chosen(paths: Paths, arguments: argparse.Namespace) -> list[Spec]:
    if arguments.short:
        return short_specs(conformance_specs(paths))
    specs = _beyond(paths) if arguments.beyond else conformance_specs(paths)
    sigs = {sig for sig in arguments.sigs.split(",") if sig}
    unknown = sigs - {spec.sig for spec in specs}
    if unknown:
        sys.exit(f"conformance: no specs of {', '.join(sorted(unknown))}")
    passed = Results.load(_record_name(arguments)).of("passed") if arguments.again else {}
    chosen = [spec for spec in specs if not sigs or spec.sig in sigs]
    return [spec for spec in chosen if arguments.match in spec.name and spec.name not in passed]


def _beyond(paths: Paths) -> list[Spec]:
    """Return the specs beyond conformance that can run here, and record how many are left out for which reason."""
    reasons = {spec: left_out(spec) for spec in beyond_specs(paths)}
    save_left_out(filter(None, reasons.values()))
    return [spec for spec, reason in reasons.items() if not reason]


def _run(paths: Paths, arguments: argparse.Namespace, chosen: Sequence[Spec], directory: Path) -> Results:
    """Run the chosen specs over a new cluster, record their outcomes, and return them."""
    kubectl = str(paths.programs / "kubectl")
    attempts = 2 if arguments.short and os.environ.get("RETRY") else 1
    suite = Run(directory, focus(chosen), arguments.processes, arguments.minutes, attempts)
    check_absent(paths)
    try:
        up(paths, arguments.form, ConformanceImages(paths, Path(etcd_36())), arguments.proxy)
        with step(f"{len(chosen)} specs (output: {directory}/e2e.log)"):
            suite.run(paths, kubectl)
        write_product(directory)
        revision, today = commit(_WRITTEN), datetime.date.today().isoformat()
        results = read(suite.junit, chosen, revision, today)
        if not arguments.short and arguments.proxy == "stock":
            if not (arguments.beyond or arguments.sigs or arguments.match or arguments.again):
                whole_runs.add(arguments.form, revision, today, results)
            _record(_record_name(arguments), results)
    finally:
        if not arguments.keep:
            down(paths)
    return results


def _record_name(arguments: argparse.Namespace) -> str:
    return f"{arguments.form}{BEYOND_RECORD if arguments.beyond else ''}"


def _record(name: str, results: Results) -> None:
    whole = Results.load(name)
    whole.outcomes.update(results.outcomes)
    whole.save(name)
    report.write()


def main() -> None:
    """Run what the arguments choose."""
    exit_on_sigterm()
    arguments = _arguments()
    if arguments.render:
        report.write()
        return
    if os.geteuid() != 0:
        sys.exit("conformance: only root can start the cluster")
    paths, started = Paths.default(), time.monotonic()
    try:
        build(paths, conformance=True)
        results = _run(paths, arguments, _chosen(paths, arguments), OUTPUT / _record_name(arguments))
    except (ClusterError, CommandError, AssertionError, TimeoutError) as error:
        sys.exit(f"conformance: {error}")
    _finish(results, time.monotonic() - started)


def _finish(results: Results, seconds: float) -> None:
    """Print the results, and end with the code 1 if not every spec passed that could run."""
    unsuccessful = {**results.of("failed"), **results.of("not run")}
    for name, outcome in sorted(unsuccessful.items()):
        print(report.line(name, outcome))
    counts = {state: len(results.of(state)) for state in ("passed", "failed", "not run")}
    print(", ".join(f"{count} {state}" for state, count in counts.items()), f"in {seconds:.0f} s")
    if counts["failed"] or not counts["passed"] or any(o.message == NOT_REACHED for o in unsuccessful.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
