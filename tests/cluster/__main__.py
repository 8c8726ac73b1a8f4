"""`make cluster`, `make cluster-load` and `make cluster-down`: a cluster of two nodes over Tetrapod."""

from __future__ import annotations

import argparse
import os
import sys
import time

from cluster.commands import CommandError
from cluster.images import BasicImages
from cluster.lifecycle import ClusterError, build, down, is_up, up
from cluster.loading import load
from cluster.settings import FORMS, PROXIES, Paths


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="cluster", description=__doc__)
    parser.add_argument("command", choices=("build", "up", "load", "down"))
    parser.add_argument("images", nargs="*", help="of `load`: images of Docker, which are copied to the nodes")
    parser.add_argument(
        "--form",
        choices=FORMS,
        default="one",
        help="one process over SQLite, four services over etcd, or kube-apiserver for comparison",
    )
    parser.add_argument(
        "--proxy", choices=PROXIES, default="stock", help="kube-proxy on the nodes, or tetrapod proxy in its place"
    )
    return parser.parse_args()


def main() -> None:
    """Run the command."""
    arguments = _arguments()
    if os.geteuid() != 0:
        if arguments.command == "build":
            print("cluster: not built, since that takes root; the tests of real nodes are skipped")
            return
        sys.exit("cluster: only root can start or end it")
    paths = Paths.default()
    try:
        if arguments.command == "build":
            build(paths)
        elif arguments.command == "up":
            _up(paths, arguments.form, arguments.proxy)
        elif arguments.command == "load":
            load(paths, arguments.images)
        else:
            down(paths)
    except (ClusterError, CommandError, AssertionError, TimeoutError) as error:
        sys.exit(f"cluster: {error}")


def _up(paths: Paths, form: str, proxy: str) -> None:
    started = time.monotonic()
    running = is_up(paths)
    if running:
        print(f"The cluster is up (FORM={running}). make cluster-down ends it.")
    else:
        build(paths)
        up(paths, form, BasicImages(paths), proxy)
        print(f"The cluster is up after {time.monotonic() - started:.1f} s. make cluster-down ends it.")
    print(f"export KUBECONFIG={paths.kubeconfig}")


if __name__ == "__main__":
    main()
