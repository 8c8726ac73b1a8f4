"""How a harness ends on SIGTERM: as by an exception, so that it stops the processes that it has started."""

from __future__ import annotations

import signal
import sys
from typing import Final

_EXIT_CODE: Final = 128 + signal.SIGTERM


def exit_on_sigterm() -> None:
    """Raise SystemExit in the main thread when this process receives SIGTERM, as `timeout` and CI systems send it.

    Without it, Python ends at once and leaves child processes running. A second SIGTERM is ignored, so that it does not
    interrupt the clean-up.
    """

    def leave(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(_EXIT_CODE)

    signal.signal(signal.SIGTERM, leave)
