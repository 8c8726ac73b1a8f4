"""Start `tetrapod` for bench/instructions.py, under valgrind.

Under valgrind a request takes fifty times longer. The timer that measures the lag of the event loop would count as
fifty times more work, so it runs every 5 seconds instead of a hundred times a second. Each step of a request would seem
to be a long one, whose CPU time the server reads. The fair scheduler would let requests wait for the next step, and
expressions would be evaluated again in a thread. So these limits are fifty times larger too.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from typing import Any

with suppress(ImportError):  # `--beside` names a tree that has no such timer
    from tetrapod.generic.http import loop_monitor

    loop_monitor.TICK = 5.0  # type: ignore[misc]
    loop_monitor.NOTICED *= 50  # type: ignore[misc]
with suppress(ImportError):
    from tetrapod.machinery import long_work

    long_work.QUICK_SECONDS *= 50  # type: ignore[misc]

with suppress(ImportError):
    from tetrapod.generic.scheduling.config import DEFAULT, FairScheduling
    from tetrapod.generic.scheduling.scheduler import FairScheduler

    _init = FairScheduler.__init__

    def _init_with_longer_steps(self: FairScheduler, config: FairScheduling = DEFAULT, **arguments: Any) -> None:
        _init(self, replace(config, step=50 * config.step, shared_step=50 * config.shared_step), **arguments)

    FairScheduler.__init__ = _init_with_longer_steps  # type: ignore[assignment,method-assign]

from tetrapod.cli.main import main  # it imports the modules that copy these limits

sys.argv[0] = "tetrapod"
sys.exit(main())
