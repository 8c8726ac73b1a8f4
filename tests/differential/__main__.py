"""`make differential`: send generated requests to kube-apiserver and to Tetrapod, and print each difference once.

`make differential ARGS='--generators objects --only /pods --count 200'` runs a part. A difference is printed as a step
of a scenario (tests/contract/scenarios).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from differential.generators import GENERATORS
from differential.report import Report
from differential.schemas import Schemas
from differential.servers import pair
from support.termination import exit_on_sigterm


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="differential", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--generators", default=",".join(GENERATORS), help="comma-separated (%(default)s)")
    parser.add_argument("--only", default="", help="scenarios that begin with this, or paths that match it")
    parser.add_argument("--seed", type=int, default=1, help="choose other requests (%(default)s)")
    parser.add_argument("--count", type=int, default=4, help="requests made from each example (%(default)s)")
    parser.add_argument(
        "--flag", action="append", default=[], help="a flag for both servers, such as --feature-gates=…"
    )
    parser.add_argument("--out", type=Path, help="append the differences to this file")
    return parser.parse_args()


def main() -> int:
    exit_on_sigterm()
    arguments = _arguments()
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # names of any characters are printed
    report = Report(arguments.out)
    with (
        tempfile.TemporaryDirectory(prefix="differential-", ignore_cleanup_errors=True) as directory,
        pair(Path(directory), *arguments.flag) as both,
    ):
        schemas = Schemas.fetch(both.original)
        for name in arguments.generators.split(","):
            GENERATORS[name](both, schemas, report, arguments.seed, arguments.count, arguments.only)
    print(report.summary())
    return int(bool(report.found))


if __name__ == "__main__":
    sys.exit(main())
