"""Write docs/reference/cluster-soak.md."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from statistics import median, quantiles
from typing import Final

from cluster.settings import FORMS, ROOT, VERSION
from cluster_soak.run import RESTARTS, Outcome
from cluster_soak.verdict import growths
from soak.verdict import FEWEST, Growth

_OUT: Final = ROOT / "docs/reference/cluster-soak.md"
_MIB: Final = 1 << 20

_HEAD: Final = f"""# A cluster that lives long

Written by `make cluster-soak`. Do not edit.

This page is for operators who want to know whether kubelets and controllers run well on Tetrapod for a long time.

- The cluster is that of `make cluster` ([how-to/cluster.md](../how-to/cluster.md)): two nodes, and stock components
  v{VERSION}.
- A round scales three Deployments, rolls out a workload, and starts a Job. Each third round drains a node by
  `kubectl drain`. A CronJob runs each minute.
- In the first {RESTARTS:.0%} of the time, each round restarts one program, all of them in turn: Tetrapod, etcd,
  controller manager, scheduler, and on each node containerd, kubelet and kube-proxy. One turn uses SIGTERM, the next
  SIGKILL.
- A round ends when everything is as declared. Nodes are ready, workloads have their replicas, and Jobs are complete. No
  pod waits for its deletion, EndpointSlices have all pods, and each pod answers through the rules of kube-proxy.
- In the rest of the time nothing restarts. After each round the programs are sampled, and a robust line through the
  samples shows their growth. *Threads* are goroutines in the kubelet's rows. A program may grow by a fifth of its
  memory, or by 24 MiB.

"""


def failures(outcome: Outcome) -> list[str]:
    """Return a sentence for each failure, and for each program that grew too much or could not be judged."""
    found = list(outcome.failures)
    for label, samples in outcome.samples.items():
        judged = growths(samples)
        if not judged:
            found.append(f"{label} has fewer than {FEWEST} samples after the warm-up")
        found += [f"{label}: {each.name} from {each.first:.0f} to {each.last:.0f}" for each in judged if each.failed]
    return found


def write(form: str, outcome: Outcome, commit: str) -> None:
    """Write the result of a run into the page, which keeps the results of other forms of the API server."""
    lines = [
        "",
        "",
        f"{outcome.rounds} rounds in {outcome.seconds / 60:.0f} minutes on {datetime.date.today()}, "
        f"at commit {commit}.",
        "",
        "| | |",
        "|---|--:|",
        *(f"| {kind} | {count} |" for kind, count in sorted(outcome.counts.items())),
        "",
        f"Until all was as declared: {median(outcome.convergence):.0f} s (median), "
        f"{quantiles(outcome.convergence, n=10)[-1]:.0f} s (90th percentile), {max(outcome.convergence):.0f} s (most).",
        "",
        "| program | memory, MiB | files | threads |",
        "|---|--:|--:|--:|",
        *(_row(label, growths(samples)) for label, samples in outcome.samples.items()),
        "",
        *(f"- Failed: {failure}." for failure in failures(outcome)),
    ]
    sections = {
        **sections_of(_OUT.read_text() if _OUT.exists() else ""),
        _title(form): "\n".join(lines).rstrip() + "\n",
    }
    texts = [f"## {title}{sections[title]}" for title in map(_title, FORMS) if title in sections]
    _OUT.write_text(_HEAD + "\n".join(texts))


def sections_of(page: str) -> dict[str, str]:
    """Return the text below each heading of a page, by heading, with one line break at the end."""
    found = re.split(r"^## (.*)$", page, flags=re.MULTILINE)[1:]
    return {title: f"{text.rstrip()}\n" for title, text in zip(found[::2], found[1::2], strict=True)}


def _title(form: str) -> str:
    return f"{FORMS[form][0].upper()}{FORMS[form][1:]}"


def _row(label: str, judged: Sequence[Growth]) -> str:
    cells = [_cell(each, _MIB if each.name == "memory" else 1) for each in judged] or ["", "", ""]
    return f"| {label} | {' | '.join(cells)} |"


def _cell(growth: Growth, unit: int) -> str:
    return f"{growth.first / unit:.0f} → {growth.last / unit:.0f}"
