"""Start `tetrapod` for bench/instructions.py, under valgrind.

Under valgrind a request takes fifty times longer. The timer that measures the lag of the event loop would count as
fifty times more work, so it runs every 5 seconds instead of ten times a second.
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

sys.argv[0] = "tetrapod"
sys.exit(main())
