"""`FairScheduling`: every setting of the fair scheduling of the event loop, in one place.

docs/explanation/event-loop-scheduling.md explains the problem, the mechanisms and the measurements behind the values.
The flag `--fair-scheduling=false` switches all of it off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class FairScheduling:
    """The settings of `FairScheduler`, of `FlowLimiter` and of the watch caches. Times are in seconds.

    The values were found with the flood benchmark (`make bench`, section Floods): one user sends 64 requests at a time,
    and another user's GET is timed.

    Attributes:
        enabled: whether requests are scheduled at all; False lets each start at once.
        step: the CPU time that one step of the loop may take while a single flow is active. Longer steps save batching
            overhead.
        shared_step: the same while several flows are active. A request that arrives waits for at most one such step.
        most_starts: the upper bound of the requests that start in one step. The scheduler lowers the actual number
            until a step fits its time.
        first_starts: the number of starts before anything was measured.
        spare_starts: starts in a step beyond that number, for flows that have not been served in it. A hundred such
            flows are a flood too.
        light: a flow is light if its requests took less than this time of the loop in the present and the previous
            `window`. The controller manager of a small cluster is light, and a flood is not.
        window: see `light`.
        light_starts: the starts of one light flow in a step, beyond which its requests wait.
        light_step: the time that all requests of light flows may take in one step.
        enough_cpu: CPUs count as scarce when the steps of the loop got less than this share of their wall time on a
            CPU.
        kept: the fraction of the measured CPU and wall time that is carried over from step to step (exponential decay),
            and of the mean time of a part from part to part.
        shared_for: the time for which two flows count as active together after one was served behind the other.
        contended_for: the time for which the loop counts as contended after a request had to wait.
        in_flight: the limit of the sum of the weights of one flow's recent requests. Eight keep a pipeline to another
            process busy.
        in_flight_scarce: the same while CPUs are scarce.
        recent: the time, for each unit of weight, after which a request counts no more: by then it waits for something
            other than a CPU.
        events: the events that are applied in one step while the cache has at most `few_watchers` watchers.
        few_watchers: the number of watchers beyond which a batch of events is applied at once, because each watcher
            then gets it in one write.
    """

    enabled: bool = True

    # FairScheduler: which flow's request the event loop serves next.
    step: float = 0.0005
    shared_step: float = 0.00025
    most_starts: int = 32
    first_starts: int = 8
    spare_starts: int = 8
    light: float = 0.02
    window: float = 0.1
    light_starts: int = 4
    light_step: float = 0.004
    enough_cpu: float = 0.87
    kept: float = 0.98
    shared_for: float = 1.0
    contended_for: float = 0.1

    # FlowLimiter: how many recent requests of one flow are in flight while several flows are active.
    in_flight: int = 8
    in_flight_scarce: int = 2
    recent: float = 0.01

    # Watch caches: how many events are applied in one step of the loop.
    events: int = 6
    few_watchers: int = 8


DEFAULT: Final = FairScheduling()
