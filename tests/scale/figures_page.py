"""The part of docs/reference/scale.md about runs that are not a cluster's."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from scale.page import Row, table
from scale.results import Figures

_MB: Final = 1_000_000


@dataclass(frozen=True)
class Page:
    """How a kind of run is shown.

    Attributes:
        title: the title of a section, with the size.
        text: what the run does.
        rows: the lines of the table.
    """

    title: str
    text: str
    rows: Sequence[Row[Figures]]


def sections(results: Sequence[Figures]) -> str:
    """Return a section for each kind of run and size."""
    groups = itertools.groupby(results, key=lambda result: (result.run, result.size))
    return "".join(_section(list(group)) for _, group in groups)


def _section(results: Sequence[Figures]) -> str:
    first = results[0]
    page = PAGES[first.run]
    rows = [
        *page.rows,
        ("Python", lambda result: result.python),
        ("commit, date", lambda result: f"{result.commit}, {result.date}"),
    ]
    return f"## {page.title.format(first.size)}\n\n{page.text}\n\n{table('figure', results, rows)}\n"


def _number(key: str) -> Callable[[Figures], str]:
    return lambda result: f"{result.values[key]:,.2f}"


def _milliseconds(key: str) -> Callable[[Figures], str]:
    return lambda result: f"{result.values[key] * 1000:,.1f}"


def _megabytes(key: str) -> Callable[[Figures], str]:
    return lambda result: f"{result.values[key] / _MB:,.0f}"


def _kilobytes_of_megabytes(key: str) -> Callable[[Figures], str]:
    return lambda result: f"{result.values[key] * 1000:,.0f}"


def _count(key: str) -> Callable[[Figures], str]:
    return lambda result: f"{result.values[key]:,.0f}"


def _of_one_pod(key: str) -> Callable[[Figures], str]:
    return lambda result: f"{1000 * result.values[key] / result.values['pods']:,.1f}"


def _bytes_of_one(result: Figures) -> str:
    return f"{(result.values['memory'] - result.values['empty']) / result.size:,.0f}"


PAGES: Final[Mapping[str, Page]] = {
    "largest": Page(
        "The largest cluster, by runs of {:,} s",
        "The number of nodes is doubled until a run breaks an objective, and then halved towards the limit. Each node "
        "has 30 pods. It gets a\nnew pod every 10 s and loses one.",
        (
            ("nodes at which all objectives are held", _count("nodes")),
            ("nodes at which one is not", _count("above")),
            ("pods", _count("pods")),
            ("requests a second", _count("rate")),
            ("99th percentile of writes, ms", _count("writes")),
            ("99th percentile of reads, ms", _count("reads")),
            ("99th percentile of the delivery of events, ms", _count("delivery")),
            ("CPU of the server, cores", _number("cpu")),
            ("memory of the server, MB", _megabytes("memory")),
        ),
    ),
    "store": Page(
        "A store of {:,} small objects",
        "The server starts over a store with so many ConfigMaps of 400 bytes, in namespaces of 1,000.",
        (
            ("ready (/readyz) after, s", _number("ready")),
            ("a page of 500 after, s", _number("page")),
            ("a list of all from the watch cache after, s", _number("cached")),
            ("the same list later, s", _number("listed")),
            ("its size, MB", _megabytes("listed_bytes")),
            ("a page of one namespace, ms", _milliseconds("namespace")),
            ("memory, MB", _megabytes("memory")),
            ("highest memory, MB", _megabytes("peak")),
            ("memory with an empty store, MB", _megabytes("empty")),
            ("memory of one object, bytes", _bytes_of_one),
        ),
    ),
    "watches": Page(
        "{:,} idle watches",
        "So many watches of ConfigMaps are open, 100 to an HTTP/2 connection. One object is written each second, which "
        "100 of them select.",
        (
            ("opened in, s", _number("opened")),
            ("delivery of an event, median, ms", _milliseconds("p50")),
            ("delivery of an event, 99th percentile, ms", _milliseconds("p99")),
            ("CPU of the server for one write, ms", _milliseconds("cpu")),
            ("memory, MB", _megabytes("memory")),
            ("memory without watches, MB", _megabytes("empty")),
            ("memory of one watch, bytes", _bytes_of_one),
        ),
    ),
    "storm": Page(
        "{:,} informers after a restart",
        "So many informers of ConfigMaps lose the server, which is stopped and started again. All of them ask for the "
        "2,000 objects again, as\nafter 410.",
        (
            ("the server was ready after, s", _number("ready")),
            ("all informers watch again after, s", _number("recovered")),
            ("lists", _count("relists")),
            ("requests with an error (429, 503, refused)", _count("errors")),
            ("highest memory, MB", _megabytes("peak")),
        ),
    ),
    "deletion": Page(
        "{:,} objects of a namespace deleted at once",
        "So many ConfigMaps are deleted by one DELETE of the collection. It is sent again if the server ends it early, "
        "at its request timeout.\nDuring that, another user sends a GET every 10 ms.",
        (
            ("requests", _count("requests")),
            ("answered after, s", _number("answered")),
            ("nothing left after, s", _number("seconds")),
            ("GET of another user, median, ms", _milliseconds("p50")),
            ("GET of another user, 99th percentile, ms", _milliseconds("p99")),
            ("highest memory, MB", _megabytes("peak")),
        ),
    ),
    "definitions": Page(
        "{:,} definitions of custom resources",
        "So many CustomResourceDefinitions with a schema of 24 kB are created. They have no objects. Then the server "
        "starts again.\nkube-apiserver v1.37.1 was tried with 5,000 on 2026-11-30. It took 7.5 GB of memory, and did "
        "not serve the last one within a minute after\nits creation.",
        (
            ("a further one is served after its create response, median, ms", _number("crd_served")),
            ("aggregated discovery, median, ms", _number("crd_discovery")),
            ("memory of one definition, kB", _kilobytes_of_megabytes("crd")),
            ("ready after a restart, s", _number("crd_start")),
            ("first GET of /openapi/v2, s", _number("crd_openapi")),
            ("longest wait of a small GET during it, ms", _number("crd_stall")),
        ),
    ),
    "kwok": Page(
        "{:,} nodes of kwok",
        "[kwok](https://kwok.sigs.k8s.io) plays the kubelets of so many nodes. Upstream's controller manager and "
        "scheduler run, with up\nto 500 requests a second each. Deployments with 30 pods for each node are created, "
        "and deleted when all pods are ready. All programs\nshare the cores.",
        (
            ("pods", _count("pods")),
            ("nodes ready after, s", _number("ready")),
            ("pods ready after, s", _number("running")),
            ("pods a second", lambda result: f"{result.values['pods'] / result.values['running']:,.0f}"),
            ("pods gone after, s", _number("deleted")),
            ("CPU of the server for one pod until it is ready, ms", _of_one_pod("cpu_running")),
            ("CPU of the server for its deletion, ms", _of_one_pod("cpu_deleted")),
            ("CPU of kwok for one pod, ms", _of_one_pod("cpu_kwok")),
            ("highest memory of the server, MB", _megabytes("memory")),
        ),
    ),
    "soak": Page(
        "An hour with {:,} nodes",
        "The load of a cluster of so many nodes with 30 pods each. Each node gets a new pod every 10 s and loses one. "
        "Events expire after five\nminutes. The line of least squares leaves out the first ten minutes.",
        (
            ("requests", _count("requests")),
            ("failed requests", _count("failed")),
            ("CPU, cores", _number("cpu")),
            ("memory after ten minutes, MB", _megabytes("warm")),
            ("memory at the end, MB", _megabytes("end")),
            ("growth of memory, MB an hour", _megabytes("slope")),
            ("open files at the beginning", _count("descriptors")),
            ("open files at the end", _count("descriptors_end")),
        ),
    ),
}
"""The kinds of runs by the first part of the names of their files."""
