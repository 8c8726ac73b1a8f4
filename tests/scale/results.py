"""The results of runs: files in `results`, from which the page and the plots are made."""

from __future__ import annotations

import datetime
import json
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from upstream.workspace import commit

KUBE_APISERVER: Final = "kube-apiserver"
"""The key of the real server."""
RESULTS: Final = Path(__file__).parent / "results"
WRITTEN: Final = ("tests/scale/results", "docs/reference/scale.md", "docs/images")
"""Files that the harness writes itself. They make no commit dirty."""


@dataclass(frozen=True)
class Latency:
    """The latencies of the requests with the same resource, verb and scope, in milliseconds.

    Attributes:
        failed: requests that the server failed: those without an answer, and those with the status 429 or 500 and
            more. A 403 does not count: the authorizer of nodes may not know a new pod yet, and kubelets repeat the
            request.
    """

    group: str
    resource: str
    subresource: str
    verb: str
    scope: str
    count: int
    p50_ms: float
    p99_ms: float
    max_ms: float = 0.0
    failed: int = 0

    @property
    def name(self) -> str:
        """The name for readers, such as `PATCH pods/status`."""
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        where = "" if self.scope == "resource" else f" ({self.scope})"
        return f"{self.verb} {resource}{'/' if self.subresource else ''}{self.subresource}{where}"


@dataclass(frozen=True)
class Percentiles:
    """Durations in milliseconds."""

    count: int
    p50_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True)
class Used:
    """The resources that processes used: cores, the highest memory in bytes, and its growth in bytes an hour."""

    cpu: float
    memory: int
    slope: float


@dataclass
class Run:
    """A run of `load cluster`.

    Attributes:
        form: the server, by its key in `scale.forms.FORMS`.
        churn: pods created a second, and as many deleted.
        seconds: the length of the measured part.
        filled: the seconds in which the cluster came into being.
        watches: how many were open at the end.
        rate: requests a second.
        lag_ms: how late the load generator sent its requests, at the 99th percentile. It shares the machine with the
            server.
        skipped: requests that it gave up, because too many were under way.
        relists: watches that had to list again.
        undelivered: writes whose event never came.
        client: the latencies that the clients saw.
        server: those of the server's own metric.
        delivery: from the sending of the write of a pod until its event has arrived at the kubelet's watch.
        startup: from the creation of a pod until a watch shows it ready.
        store: what etcd used; None if the store is in the server.
        load_cpu: cores that the load generator took.
        load_memory: its highest resident memory in bytes.
        python: the version of Python that ran the server; "" for kube-apiserver.
    """

    form: str
    nodes: int
    pods: int
    churn: float
    seconds: float
    filled: float
    commit: str
    date: str
    cores: int
    watches: int
    rate: float
    lag_ms: float
    skipped: int
    relists: int
    undelivered: int
    client: list[Latency]
    server: list[Latency]
    delivery: Percentiles | None
    startup: Percentiles | None
    use: Used
    store: Used | None
    load_cpu: float
    load_memory: int
    python: str = ""

    @property
    def file(self) -> str:
        return f"cluster-{self.nodes}-{self.form}.json"


@dataclass
class Figures:
    """The figures of a run that is not a cluster's.

    Attributes:
        run: the kind of run, by its key in `scale.figures_page.PAGES`.
        size: how many objects, watches or definitions.
        values: the figures: times in seconds, sizes in bytes, CPU time in seconds.
        python: the version of Python that ran the server; "" for kube-apiserver.
    """

    run: str
    size: int
    form: str
    commit: str
    date: str
    cores: int
    values: dict[str, float]
    python: str = ""

    @property
    def file(self) -> str:
        return f"{self.run}-{self.size}-{self.form}.json"


def figures(run: str, size: int, form: str, **values: float) -> Figures:
    """Return a result with the commit and the date of now."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return Figures(run, size, form, commit(WRITTEN), today, os.cpu_count() or 1, values, python_of(form))


def python_of(form: str) -> str:
    """Return the version of Python that runs a server: that of this process, or "" for kube-apiserver."""
    return "" if form == KUBE_APISERVER else platform.python_version()


Result = Run | Figures


def write(result: Result, directory: Path = RESULTS) -> Path:
    """Store a result in the place of an earlier one with the same server and size, and return the file."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / result.file
    path.write_text(json.dumps(asdict(result), indent=1, sort_keys=True) + "\n")
    return path


def read_all(directory: Path = RESULTS) -> list[Result]:
    """Return all stored results, the smallest sizes first."""
    runs = [_run(json.loads(path.read_text())) for path in directory.glob("cluster-*.json")]
    rest = [path for path in directory.glob("*.json") if not path.name.startswith("cluster-")]
    others = [Figures(**json.loads(path.read_text())) for path in rest]
    return [
        *sorted(runs, key=lambda run: (run.nodes, run.form)),
        *sorted(others, key=lambda run: (run.run, run.size, run.form)),
    ]


def _run(content: dict[str, Any]) -> Run:
    for key in ("client", "server"):
        content[key] = [Latency(**call) for call in content[key]]
    for key, kind in (("delivery", Percentiles), ("startup", Percentiles), ("use", Used), ("store", Used)):
        if content[key] is not None:
            content[key] = kind(**content[key])
    return Run(**content)
