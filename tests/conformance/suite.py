"""Run specs of upstream's e2e.test over a cluster."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cluster.settings import NODES, ROOT, Paths
from support.server import without_cluster

OUTPUT: Final = ROOT / ".cache" / "conformance"
"""The directory of the results, by form."""
_PROGRESS: Final = 30  # seconds without a finished spec after which ginkgo reports on those that run


@dataclass(frozen=True)
class Run:
    """A run of the suite.

    Args:
        directory: where its files are written: `e2e.log` and `junit_01.xml`.
        focus: the regular expression that selects specs by their whole names.
        processes: the number of specs that run at once. Specs that are marked as serial run after the others, alone.
        minutes: the limit for the run. Specs that have not run by then count as not run.
        attempts: how often a spec is run that fails.
    """

    directory: Path
    focus: str
    processes: int
    minutes: int
    attempts: int = 1

    @property
    def junit(self) -> Path:
        """The results of the specs."""
        return self.directory / "junit_01.xml"

    def run(self, paths: Paths, kubectl: str) -> bool:
        """Run the specs, with their output in e2e.log, and return whether all passed."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.junit.unlink(missing_ok=True)
        with (self.directory / "e2e.log").open("wb") as log:
            done = subprocess.run(
                self._command(paths, kubectl), stdout=log, stderr=log, env=_environment(kubectl), check=False
            )
        return done.returncode == 0

    def _command(self, paths: Paths, kubectl: str) -> list[str]:
        argv = [str(paths.programs / "ginkgo"), "--no-color", f"--procs={self.processes}", f"--focus={self.focus}"]
        argv += [f"--flake-attempts={self.attempts}"] if self.attempts > 1 else []
        argv += [f"--timeout={self.minutes}m", f"--poll-progress-after={_PROGRESS}s", "--silence-skips"]
        argv += [str(paths.programs / "e2e.test"), "--", f"--kubeconfig={paths.kubeconfig}", "--provider=skeleton"]
        argv += [f"--num-nodes={len(NODES)}", f"--kubectl-path={kubectl}", f"--report-dir={self.directory}"]
        return argv


def _environment(kubectl: str) -> dict[str, str]:
    kept = without_cluster()
    return {**kept, "PATH": f"{Path(kubectl).parent}:{kept['PATH']}"}
