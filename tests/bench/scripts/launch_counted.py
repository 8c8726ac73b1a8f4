"""Start `tetrapod` for bench/instructions.py, under valgrind.

Under valgrind a request takes fifty times longer. The timer that measures the lag of the event loop would count as
fifty times more work, so it runs every 5 seconds instead of a hundred times a second. Each step of a request would seem
to be a long one, whose CPU time the server reads, and expressions would be evaluated again in a thread. So these limits
are fifty times larger too.
"""

from __future__ import annotations

import sys
from contextlib import suppress

with suppress(ImportError):  # `--beside` names a tree that has no such timer
    from tetrapod.generic.http import loop_monitor

    loop_monitor.TICK = 5.0  # type: ignore[misc]
    loop_monitor.NOTICED *= 50  # type: ignore[misc]
with suppress(ImportError):
    from tetrapod.machinery import long_work

    long_work.QUICK_SECONDS *= 50  # type: ignore[misc]

from tetrapod.cli.main import main  # it imports the modules that copy these limits

sys.argv[0] = "tetrapod"
sys.exit(main())
