"""`make chaos`: inject each fault for some time, print a line for each, and write the figures as JSON.

Settings are CHAOS_FAULTS, CHAOS_SECONDS, CHAOS_SEED and CHAOS_DIRECTORY. With CHAOS_HTTP2=1 all clients of a server
share HTTP/2 connections.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path

from chaos.report import figures, line, write
from chaos.run import Run
from chaos.scenarios import SCENARIOS
from support.termination import exit_on_sigterm


def main() -> int:
    exit_on_sigterm()
    seed = int(os.environ.get("CHAOS_SEED") or int.from_bytes(os.urandom(4)))
    seconds = float(os.environ.get("CHAOS_SECONDS") or 60)
    names = (os.environ.get("CHAOS_FAULTS") or " ".join(SCENARIOS)).replace(",", " ").split()
    if unknown := [name for name in names if name not in SCENARIOS]:
        print(f"no such fault: {', '.join(unknown)}; there are: {', '.join(SCENARIOS)}", file=sys.stderr)
        return 2
    directory = Path(os.environ.get("CHAOS_DIRECTORY") or tempfile.mkdtemp(prefix="chaos-"))
    http2 = os.environ.get("CHAOS_HTTP2", "") not in ("", "0")
    print(
        f"CHAOS_SEED={seed} CHAOS_SECONDS={seconds:.0f} CHAOS_HTTP2={int(http2)}, logs and figures in {directory}",
        flush=True,
    )
    failed = False
    for name in names:
        scenario = SCENARIOS[name]
        if why_not := scenario.missing():
            print(f"{name:22} left out: {why_not}", flush=True)
            continue
        here = _emptied(directory / name)
        with scenario.open(here, seed) as (world, fault):
            run = Run(world, seed, workers=scenario.workers, watchers=scenario.watchers, http2=http2)
            try:
                result = asyncio.run(run.through([fault], seconds))
            finally:
                run.history.dump(here / "history.jsonl")
        print(line(name, result), flush=True)
        for violation in result.violations[:20]:
            print(f"    {violation}", flush=True)
        failed = failed or bool(result.violations)
        write(directory / "figures.json", name, figures(result))
    return int(failed)


def _emptied(directory: Path) -> Path:
    """Create a directory and return it. The data of an earlier run is removed, because its history is not checked."""
    if directory.exists():
        shutil.rmtree(directory)
    directory.mkdir(parents=True)
    return directory


sys.exit(main())
