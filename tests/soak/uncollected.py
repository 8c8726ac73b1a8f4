"""A launcher of the command line without the cyclic garbage collector.

At SIGUSR1 it writes how many unreachable objects of each type reference cycles keep alive, as JSON, to the file that
GARBAGE_REPORT names, and frees them.
"""

from __future__ import annotations

import gc
import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any


def report(*_: Any) -> None:
    """Collect and write the report; the file appears when it is complete."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    counts = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.garbage)
    gc.garbage.clear()
    gc.collect()
    target = Path(os.environ["GARBAGE_REPORT"])
    partial = target.with_suffix(".partial")
    partial.write_text(json.dumps(counts))
    partial.rename(target)


def main() -> None:
    from tetrapod.cli.main import main as tetrapod

    signal.signal(signal.SIGUSR1, report)
    gc.disable()
    gc.enable = lambda: None
    tetrapod()


if __name__ == "__main__":
    main()
