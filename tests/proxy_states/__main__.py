"""`make proxy-states`: compare the rules of `tetrapod proxy` with those of kube-proxy over generated states.

Both run in network namespaces of their own, beside one API server, with the same random settings. Services, slices and
the node are changed at random. After each step, iptables-save of both must become equal; restarts happen in between.
The same seed makes the same states.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from cluster.settings import Paths
from proxy_states.judge import Different, judge
from proxy_states.rules import KINDS
from support.termination import exit_on_sigterm

_INSIDE = "TETRAPOD_PROXY_STATES"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="proxy-states", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1, help="choose other states (%(default)s)")
    parser.add_argument("--cases", type=int, default=20, help="starts with new settings (%(default)s)")
    parser.add_argument("--steps", type=int, default=15, help="states in each case (%(default)s)")
    return parser.parse_args()


def main() -> int:
    """Compare, in a network namespace of its own."""
    exit_on_sigterm()
    arguments = _arguments()
    if os.geteuid() != 0:
        sys.exit("proxy-states: only root can make network namespaces")
    if not (Paths.default().programs / "kube-proxy").exists():
        sys.exit("proxy-states: kube-proxy is missing; tools/cluster.sh builds it")
    if _INSIDE not in os.environ:
        argv = ["unshare", "--net", sys.executable, "-m", "proxy_states", *sys.argv[1:]]
        os.execvpe(argv[0], argv, {**os.environ, _INSIDE: "1"})
    directory = Path(tempfile.mkdtemp(prefix="proxy-states-"))
    try:
        judged = judge(directory, arguments.seed, arguments.cases, arguments.steps)
    except Different as error:
        print(f"seed {arguments.seed}: {error}\nlogs: {directory}")
        return 1
    shutil.rmtree(directory)
    print(f"seed {arguments.seed}: {judged.compared} states with {judged.lines} lines of rules are equal")
    print("states with rules of a kind:", ", ".join(f"{kind} {judged.kinds[kind]}" for kind in KINDS))
    if judged.repetitions:
        print(f"kube-proxy had missed the zone of the node {judged.repetitions} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
