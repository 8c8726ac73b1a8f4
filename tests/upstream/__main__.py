"""`make upstream`: run upstream's integration suites against Tetrapod, and write docs/reference/upstream-suites.md.

`make upstream ARGS='--only auth,client'` runs some packages and keeps the recorded results of the others. With
`--again` only those tests run that failed or did not finish in the record, so that a long package can run in parts. The
exit code is 1 if a test failed that is not among the recorded failures. With RETRY=1, as in CI, a package with such
tests is run once more.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence

from support.termination import exit_on_sigterm
from upstream import report
from upstream.packages import PACKAGES, SHORT, Package
from upstream.results import Result, load, save
from upstream.runs import Choice, run_package
from upstream.verdicts import Rules
from upstream.workspace import Workspace, commit, prepare


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="upstream", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="names of packages, comma-separated (default: all)")
    parser.add_argument("--run", default="", help="only the tests that match (go test -run); records nothing")
    parser.add_argument("--short", action="store_true", help="run the short form, which records nothing")
    parser.add_argument("--again", action="store_true", help="only tests that failed or did not finish")
    parser.add_argument("--build", action="store_true", help="only build")
    parser.add_argument("--time", type=int, help="seconds for each package (default: 900, and more for long ones)")
    parser.add_argument("--render", action="store_true", help="only write the page from the records")
    return parser.parse_args()


def _chosen(arguments: argparse.Namespace) -> Sequence[Package]:
    if arguments.short:
        return [package for package in PACKAGES if package.name in SHORT]
    names = [name for name in arguments.only.split(",") if name]
    unknown = set(names) - {package.name for package in PACKAGES}
    if unknown:
        sys.exit(f"upstream: no such package: {', '.join(sorted(unknown))}")
    packages = [package for package in PACKAGES if not names or package.name in names]
    return [package for package in packages if not arguments.again or _unsuccessful(package)]


def _unsuccessful(package: Package) -> bool:
    recorded = load(package)
    return recorded is None or bool(recorded.unsuccessful())


def _new_failures(recorded: Result | None, result: Result) -> list[str]:
    known = set(recorded.failed) if recorded else set()
    return [name for name in result.failed if not any(re.fullmatch(f"{re.escape(k)}(/.*)?", name) for k in known)]


def _run(workspace: Workspace, package: Package, arguments: argparse.Namespace, rules: Rules) -> list[str]:
    """Run a package, print and record its result, and return the failures that are new."""
    recorded = load(package)
    again = recorded if arguments.again and recorded and recorded.repeatable() else None
    choice = Choice(arguments.run, frozenset(again.unsuccessful()) if again else None)
    result = run_package(workspace, package, arguments.time or package.limit, choice).judged(package, rules, commit())
    if again:
        result = again.updated(result)
    print(report.line(package, result), flush=True)
    for name, message in {**result.failed, **result.unfinished}.items():
        print(f"    {name}: {message}", flush=True)
    new = _new_failures(recorded, result)
    if arguments.short:
        new += result.unfinished
    if not (result.passed or result.not_applicable or new):
        new.append("no test has passed")
    if not (arguments.run or arguments.short):
        save(package, result)
    return [f"{package.name} {name}" for name in new]


def main() -> None:
    """Run what the arguments choose."""
    exit_on_sigterm()
    arguments = _arguments()
    rules = Rules.load()
    if arguments.render:
        report.write()
        return
    workspace = prepare()
    new: list[str] = []
    for package in _chosen(arguments):
        if not workspace.build(package):
            new.append(f"{package.name} does not build")
        elif not arguments.build:
            failures = _run(workspace, package, arguments, rules)
            if failures and arguments.short and os.environ.get("RETRY"):
                print(f"== Retried because of new failures: {package.name}", flush=True)
                failures = _run(workspace, package, arguments, rules)
            new += failures
    if not (arguments.run or arguments.short or arguments.build):
        report.write()
    if new:
        sys.exit("New failures:\n" + "\n".join(new))


if __name__ == "__main__":
    main()
