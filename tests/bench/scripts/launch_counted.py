"""Start `tetrapod` for bench/instructions.py, under valgrind.

Under valgrind a request takes fifty times longer. The timer that measures the lag of the event loop would count as
fifty times more work, so it runs every 5 seconds instead of a hundred times a second. Each step of a request would seem
to be a long one, whose CPU time the server reads, so the limit for that is fifty times larger too.
"""

from __future__ import annotations

import sys

from tetrapod.cli.main import main

try:
    from tetrapod.generic.http import loop_monitor
except ImportError:  # `--beside` names a tree that has no such timer
    pass
else:
    loop_monitor.TICK = 5.0  # type: ignore[misc]
    loop_monitor.NOTICED *= 50  # type: ignore[misc]

sys.argv[0] = "tetrapod"
sys.exit(main())
