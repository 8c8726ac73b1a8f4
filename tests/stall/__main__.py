"""`make stall`: send every case to every form of the server, and write docs/reference/stalls.md.

`make stall ARGS='--only YAML --forms one'` measures a part and prints it. With `--update` it also replaces the figures
of that part in the page. KUBE_APISERVER names a kube-apiserver to measure beside.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from stall import extended
from stall.case import Case
from stall.cases import CASES
from stall.cases.admission import CASES as EXTENDED
from stall.cases.cbor import CASES as CBOR
from stall.http2 import carried
from stall.measure import Measuring, Result, failed, probing
from stall.report import OUT, line, render
from stall.setup import prepare
from stall.short import SHORT
from stall.updating import updated
from stall.worlds import FORMS
from support.termination import exit_on_sigterm
from support.webhook import webhook_server


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="stall", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", default="", help="measure the cases alone whose name matches this expression; prints, writes nothing"
    )
    parser.add_argument(
        "--who", default="", help="measure the cases of these users alone, comma-separated; prints, writes nothing"
    )
    parser.add_argument("--short", action="store_true", help="measure the cases of the short form alone")
    parser.add_argument(
        "--http2",
        action="store_true",
        help="send over HTTP/2, copies as streams of one connection; prints, writes nothing",
    )
    parser.add_argument(
        "--forms",
        default="one,four",
        help="one, four, kube-apiserver, cbor (one process, cases in CBOR; prints, writes nothing); (%(default)s)",
    )
    parser.add_argument("--doublings", type=int, default=4, help="sizes of each case besides the largest (%(default)s)")
    parser.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="judge waits by this clock: cpu on a busy host (%(default)s)",
    )
    parser.add_argument("--update", action="store_true", help=f"replace the figures of these cases in {OUT.name}")
    parser.add_argument("--out", type=Path, help=f"where the table goes ({OUT.name} by default, for a whole run)")
    return parser.parse_args()


async def _measure(form: str, cases: Sequence[Case], arguments: argparse.Namespace, directory: Path) -> list[Result]:
    results, http2 = [], arguments.http2
    with FORMS[form](directory / form) as world, probing(world, http2=http2) as probe, webhook_server() as webhooks:
        measuring = Measuring(world, probe, arguments.doublings, arguments.clock, http2=http2)
        await prepare(measuring.admin)
        if any(case in EXTENDED for case in cases):
            await extended.prepare(measuring.admin, webhooks)
        for case in cases:
            result = await measuring.case(case)
            results.append(result)
            print(line(form, result), flush=True)
    return results


def main() -> int:
    exit_on_sigterm()
    arguments = _arguments()
    forms = [*arguments.forms.split(",")]
    if os.environ.get("KUBE_APISERVER") and "kube-apiserver" not in forms:
        forms.append("kube-apiserver")
    users = set(filter(None, arguments.who.split(",")))
    cases = [
        case
        for case in (SHORT if arguments.short else [*CASES, *CBOR])
        if re.search(arguments.only, case.name) and (not users or case.who in users)
        if not arguments.http2 or all(map(carried, case.messages(1)))
    ]
    results: dict[str, list[Result]] = {}
    whole = not (arguments.only or users or arguments.short or arguments.http2 or "cbor" in forms)
    out = arguments.out or (OUT if whole else None)
    with tempfile.TemporaryDirectory(prefix="stall-", ignore_cleanup_errors=True) as directory:
        for form in forms:
            sent = [case for case in cases if (case in CBOR) == (form == "cbor")]
            results[form] = asyncio.run(_measure(form, sent, arguments, Path(directory)))
            if out is not None:  # after each form: upstream's takes minutes for some of the cases
                out.write_text(render(results, arguments.clock))
            if arguments.update and form != "cbor":
                OUT.write_text(updated(OUT.read_text(), {form: results[form]}))
    bad = [result for form in forms if form != "kube-apiserver" for result in failed(results[form])]
    print(f"{len(bad)} of {sum(map(len, results.values()))} fail")
    return int(bool(bad))


sys.exit(main())
