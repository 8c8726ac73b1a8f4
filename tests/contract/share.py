"""Replay every recording and print the share of equal responses and scenarios per area (`make contract`).

`--write` removes the scenarios that pass from not_yet.txt. It adds scenarios only with `--grow`.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from contract import golden
from contract.replaying import FLAGS, HERE, NOT_YET, RECORDINGS, client_of
from support.server import running


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="scenarios whose name begins with this")
    parser.add_argument("--timeout", type=float, default=6.0)
    parser.add_argument("--server", help="replay against this one instead of starting one")
    parser.add_argument("--ca", default="")
    parser.add_argument("--http2", action="store_true", help="speak HTTP/2")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--grow", action="store_true")
    args = parser.parse_args()
    if args.server:
        return replay_all(args, args.server, args.ca)
    with tempfile.TemporaryDirectory() as directory, running(Path(directory), *FLAGS) as server:
        return replay_all(args, server.url, str(server.ca))


def replay_all(args: argparse.Namespace, url: str, ca: str) -> int:
    steps: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0, 0, 0])
    failed = set()
    for path in RECORDINGS:
        if not path.stem.startswith(args.only):
            continue
        good, bad = replay(path, url, ca, args)
        row = steps[path.stem.split("-")[0]]
        row[0] += good
        row[1] += good + bad
        row[2] += not bad
        row[3] += 1
        if bad:
            failed.add(path.stem)
    print(f"{'area':8} {'scenarios':>12} {'answers':>14}")
    for area, (good, total, whole, scenarios) in sorted(steps.items()):
        print(f"{area:8} {whole:5} of {scenarios:3} {good:6} of {total:4}  {100 * good / total:5.1f} %")
    if args.write:
        wanted = sorted(failed if args.grow else failed & NOT_YET)
        (HERE / "not_yet.txt").write_text("".join(f"{name}\n" for name in wanted))
    for name in sorted(failed - NOT_YET):
        print(f"not equal, and not on the list: {name}")
    return 0


def replay(path: Path, url: str, ca: str, args: argparse.Namespace) -> tuple[int, int]:
    recording = json.loads(path.read_text())
    recorded = [s for s in recording["steps"] if s.get("record") is not False]
    client = client_of(url, ca, args.timeout, http2=args.http2)
    try:
        answers = golden.run(recording, client)
    except Exception as error:
        print(f"FAIL {path.stem}: {type(error).__name__}: {error}", flush=True)
        return 0, len(recorded)
    finally:
        client.close()
    good = 0
    for number, (step, answer) in enumerate(zip(recording["steps"], answers, strict=True), 1):
        if step.get("record") is False:
            continue
        found = list(golden.compare(step["answer"], answer))
        good += not found
        if found:
            print(f"FAIL {path.stem} step {number}: {step['request']}", flush=True)
            for line in found if args.verbose else found[:4]:
                print(f"     {line}")
    return good, len(recorded) - good


if __name__ == "__main__":
    sys.exit(main())
