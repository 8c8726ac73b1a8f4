"""Render docs/reference/scale.md and its plots from the stored results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from scale import cluster_page, figures_page
from scale.results import Figures, Result, Run, read_all

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "reference" / "scale.md"
IMAGES: Final = ROOT / "docs" / "images"

_HEAD: Final = """# Scale

This page is for operators who ask how large a cluster Tetrapod holds on a small machine, and at what latency. \
The objectives are in
[SLOs](../SLOS.md). `make scale` writes this page from `tests/scale/results`. Do not edit it.

Each run of a cluster starts a server with an empty store, fills it, and then measures it under the load of N nodes:

- N kubelets, each with its own user and TLS connection. Each renews a lease every 10 s and reports its status. It \
watches its pods, its
  node, and each ConfigMap and Secret that a pod mounts, and also services, runtime classes and CSI drivers.
- N kube-proxies, a controller manager's and a scheduler's informers.
- Pods that are created, bound, updated three times by their kubelets, and deleted. Each causes events and updates of \
endpoint slices.
- An operator with custom resources.
- Clients that list all pods: from the cache, in pages, by label, and as a Table.

The load generator (`tests/scale/load`, Go) sends at fixed times, whether or not the server keeps up. A latency counts \
from the moment at
which the request was due. It runs on the same cores as the server and etcd. The figures say what one small machine \
does, and how servers
compare on it; a server with cores of its own does better.

"""


def render(results: Sequence[Result]) -> str:
    """Return the page."""
    runs = _runs(results)
    parts = [_HEAD, cluster_page.plots() if runs else "", cluster_page.models(runs), tables(results)]
    return "".join(parts).rstrip("\n") + "\n"


def tables(results: Sequence[Result]) -> str:
    """Return the sections with the results."""
    others = [result for result in results if isinstance(result, Figures)]
    return cluster_page.sections(_runs(results)) + figures_page.sections(others)


def draw(results: Sequence[Result]) -> dict[str, str]:
    """Return the plots by the names of their files."""
    return cluster_page.draw(_runs(results))


def write(page: Path = PAGE, images: Path = IMAGES) -> None:
    """Write the page and the plots from the stored results."""
    results = read_all()
    page.write_text(render(results))
    for name, svg in draw(results).items():
        (images / name).write_text(svg)


def _runs(results: Sequence[Result]) -> list[Run]:
    return [result for result in results if isinstance(result, Run)]
