"""The run: rounds of churn, with restarts in the first part, and samples of all programs in the second."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from cluster.processes import Processes
from cluster.settings import Paths
from cluster_soak.convergence import missing, unreached
from cluster_soak.programs import Sample, programs_of
from cluster_soak.workloads import Workloads
from support.https_client import HttpsClient
from support.waiting import until

RESTARTS: Final = 0.5
"""The part of the time in which programs restart. Afterwards they grow old, and their growth is judged."""
_DRAIN_EVERY: Final = 3
_CONVERGENCE: Final = 240
"""The most seconds until all is as declared after a round of changes."""


@dataclass
class Outcome:
    """The events of a run.

    Attributes:
        seconds: the duration.
        rounds: the number of rounds.
        counts: changes and restarts, by their kind.
        convergence: for each round, the seconds until all was as declared.
        failures: a sentence for each thing that was not as declared in time.
        samples: by the label of the program, since its last restart.
    """

    seconds: float = 0
    rounds: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    convergence: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    samples: dict[str, list[Sample]] = field(default_factory=dict)


class Soak:
    """A run over a cluster.

    Args:
        paths: the directories of the cluster, which runs.
        client: its administrator.
        seconds: the duration. The last round ends after it.
        seed: of the random changes.
        progress: gets a line for each round.
    """

    def __init__(
        self, paths: Paths, client: HttpsClient, seconds: float, seed: int, progress: Callable[[str], None]
    ) -> None:
        self._client = client
        self._seconds = seconds
        self._progress = progress
        self._programs = programs_of(Processes(paths.processes, paths.logs))
        self._outcome = Outcome()
        self._workloads = Workloads(client, paths, random.Random(seed), self._outcome.counts)
        self._began = time.monotonic()

    def run(self) -> Outcome:
        """Run the rounds, and return what happened."""
        self._workloads.create()
        outcome = self._outcome
        while (elapsed := time.monotonic() - self._began) < self._seconds:
            restarting = elapsed < RESTARTS * self._seconds
            self._round(outcome.rounds, restarting)
            outcome.rounds += 1
            if not restarting:
                self._sample()
        outcome.seconds = time.monotonic() - self._began
        return outcome

    def _round(self, number: int, restarting: bool) -> None:
        self._workloads.change(number)
        restarted = self._restart(number) if restarting else ""
        if number % _DRAIN_EVERY == _DRAIN_EVERY - 1:
            until(self._ready, description="the API server")
            self._workloads.uncordon(self._workloads.drain(number))
        began = time.monotonic()
        try:
            until(self._missing, lambda found: not found, timeout=_CONVERGENCE)
        except AssertionError:
            sentences = [f"{program.label} does not run" for program in self._programs if program.pid() is None]
            self._outcome.failures += [f"round {number}{restarted}: {each}" for each in sentences + self._missing()]
        seconds = time.monotonic() - began
        self._outcome.convergence.append(seconds)
        self._progress(f"round {number}{restarted}: as declared after {seconds:.0f} s")

    def _restart(self, number: int) -> str:
        """Restart the next program, by SIGTERM and SIGKILL in turn, and return the words for the report."""
        program = self._programs[number % len(self._programs)]
        chosen = signal.SIGKILL if number // len(self._programs) % 2 else signal.SIGTERM
        program.restart(chosen)
        self._outcome.counts[f"restarts of {program.name} ({chosen.name})"] += 1
        return f", restart of {program.label} by {chosen.name}"

    def _ready(self) -> bool:
        with suppress(OSError):
            return self._client.call("GET", "/readyz").status == 200
        return False

    def _missing(self) -> list[str]:
        try:
            return missing(self._client) or unreached(self._client)
        except (OSError, KeyError) as error:  # a restart, or a Service or pod that is just being replaced
            return [f"the API server or a Service does not answer: {error!r}"]

    def _sample(self) -> None:
        for program in self._programs:
            sample = program.sample(self._client, self._began)
            if sample is None:
                self._outcome.failures.append(f"{program.label} does not run")
            else:
                self._outcome.samples.setdefault(program.label, []).append(sample)
