"""`make cluster-soak`: start a cluster, let it live under churn and restarts, and write docs/reference/cluster-soak.md.

The exit code is 1 if something was not as declared in time, or if a program grew too much.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial

from cluster.commands import CommandError
from cluster.images import BasicImages
from cluster.lifecycle import ClusterError, build, check_absent, down, up
from cluster.settings import FORMS, Paths
from cluster_soak.report import failures, write
from cluster_soak.run import Soak
from support.termination import exit_on_sigterm
from upstream.workspace import commit


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="cluster_soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--form", choices=FORMS, default="one", help="the API server (default: one)")
    parser.add_argument("--minutes", type=float, default=60, help="the duration (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="of the random changes (default: 1)")
    parser.add_argument("--no-page", action="store_true", help="print failures only, and leave the page as it is")
    return parser.parse_args()


def main() -> None:
    """Run what the arguments choose."""
    exit_on_sigterm()
    arguments = _arguments()
    if os.geteuid() != 0:
        sys.exit("cluster_soak: only root can start a cluster")
    paths = Paths.default()
    try:
        build(paths)
        check_absent(paths)
        try:
            client = up(paths, arguments.form, BasicImages(paths))
            outcome = Soak(paths, client, arguments.minutes * 60, arguments.seed, partial(print, flush=True)).run()
        finally:
            down(paths)
    except (ClusterError, CommandError, AssertionError, TimeoutError) as error:
        sys.exit(f"cluster_soak: {error}")
    if not arguments.no_page:
        write(arguments.form, outcome, commit(("docs/reference/cluster-soak.md",)))
    found = failures(outcome)
    for failure in found:
        print(f"FAILED: {failure}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
