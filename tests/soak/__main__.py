"""`make soak`: SOAK_FORMS (one-process, four-services), SOAK_SECONDS and the others of `soak.settings`, SOAK_REPORT (a
file to write).
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import uvloop

from soak.report import render
from soak.run import run
from soak.settings import FORMS, Settings
from soak.worlds import WORLDS
from support.termination import exit_on_sigterm


def main() -> int:
    """Run each form, print its tables, and return the exit code."""
    exit_on_sigterm()
    forms = (os.environ.get("SOAK_FORMS") or " ".join(FORMS)).replace(",", " ").split()
    if unknown := [form for form in forms if form not in WORLDS]:
        print(f"unknown form: {', '.join(unknown)}; there are: {', '.join(WORLDS)}", file=sys.stderr)
        return 2
    settings = Settings.of()
    directory = Path(os.environ.get("SOAK_DIRECTORY") or tempfile.mkdtemp(prefix="soak-"))
    print(f"{settings}, logs in {directory}", flush=True)
    reports, failed = [], False
    for form in forms:
        with WORLDS[form](directory / form) as world:
            result = uvloop.run(run(form, world, settings, lambda line: print(line, flush=True)))
        reports.append(render(result))
        print(f"\n{reports[-1]}\n", flush=True)
        failed = failed or bool(result.failures)
    if file := os.environ.get("SOAK_REPORT"):
        Path(file).write_text("\n\n".join(reports) + "\n")
    return int(failed)


sys.exit(main())
