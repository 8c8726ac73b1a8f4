"""The figures of a run."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from chaos.history import WRITES, Outcome
from chaos.run import Result


def figures(result: Result) -> dict[str, Any]:
    operations = result.history.operations
    outcomes = Counter(operation.outcome.value for operation in operations)
    outages = [max(this.write_outage.values()) for this in result.rounds]
    return {
        "seconds": round(result.seconds, 1),
        "faults": len(result.rounds),
        "operations": len(operations),
        "acknowledged_writes": sum(op.verb in WRITES and op.outcome is Outcome.DONE for op in operations),
        "reads": sum(op.verb not in WRITES and op.outcome is Outcome.DONE for op in operations),
        "outcomes": dict(outcomes),
        "statuses": dict(Counter(str(op.status) for op in operations)),
        "watches": len(result.history.watches),
        "events": sum(len(watch.events) for watch in result.history.watches),
        "relists": result.relists,
        "most_relists": result.most_relists,
        "watchers": result.watchers,
        "recovery": _spread(this.recovered - this.healed for this in result.rounds),
        "silence": _spread(outages),
        "what": sorted({this.what for this in result.rounds}),
        "violations": [str(violation) for violation in result.violations],
    }


def _spread(seconds: Iterable[float]) -> dict[str, float]:
    values = sorted(seconds)
    if not values:
        return {}
    return {"median": round(statistics.median(values), 2), "worst": round(values[-1], 2)}


def line(name: str, result: Result) -> str:
    known = figures(result)
    recovery, silence = known["recovery"], known["silence"]
    return (
        f"{name:22} {known['faults']:3} faults in {known['seconds']:.0f} s, {known['operations']} operations "
        f"({known['outcomes'].get('unknown', 0)} unknown), {known['events']} events, "
        f"{known['relists']} relists of {known['watchers']} watchers; "
        f"recovered in {recovery.get('median')} s (worst {recovery.get('worst')}), without a write for "
        f"{silence.get('median')} s (worst {silence.get('worst')}); "
        f"{'NOTHING LOST' if not result.violations else f'{len(result.violations)} VIOLATIONS'}"
    )


def write(path: Path, name: str, known: dict[str, Any]) -> None:
    """Update the report: the figures as JSON, and as a table."""
    all_known = json.loads(path.read_text()) if path.exists() else {}
    all_known[name] = known
    path.write_text(json.dumps(all_known, indent=1))
    path.with_suffix(".md").write_text(table(all_known))


def table(all_known: Mapping[str, dict[str, Any]]) -> str:
    """Return the table for docs/explanation/reliability.md. Times are in seconds."""
    lines = [
        (
            "| fault | times | in | operations | unknown | acknowledged writes | events | relists | no write for | "
            "recovered in | violations |"
        ),
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, known in all_known.items():
        cells = [name, known["faults"], known["seconds"], known["operations"], known["outcomes"].get("unknown", 0)]
        cells += [known["acknowledged_writes"], known["events"], f"{known['relists']} by {known['watchers']}"]
        cells += [f"{known[what].get('median')} ({known[what].get('worst')})" for what in ("silence", "recovery")]
        lines.append("| " + " | ".join(map(str, [*cells, len(known["violations"])])) + " |")
    return "\n".join(lines) + "\n"
