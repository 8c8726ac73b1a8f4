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

- N kubelets, each with its own user and TLS connection: a lease renewed every 10 s, node status, and watches of their \
pods, of services,
  of their node, of runtime classes and CSI drivers, and of each ConfigMap and Secret that a pod mounts.
- N kube-proxies, a controller manager's and a scheduler's informers.
- Pods that are created, bound, updated three times by their kubelets, and deleted; with events and updates of \
endpoint slices.
- An operator with custom resources, and clients that list everything: from the cache, in pages, by label, and as a \
Table.

The load generator (`tests/scale/load`, Go) sends at fixed times, whether or not the server keeps up. A latency counts \
from the moment at
which the request was due. It runs on the same cores as the server and etcd. The figures say what one small machine \
does, and how servers
compare on it; a server with cores of its own does better.

"""


def render(results: Sequence[Result]) -> str:
    """Return the page."""
    runs = [result for result in results if isinstance(result, Run)]
    others = [result for result in results if isinstance(result, Figures)]
    parts = [_HEAD, cluster_page.plots() if runs else "", cluster_page.models(runs), cluster_page.sections(runs)]
    return "".join([*parts, figures_page.sections(others)]).rstrip("\n") + "\n"


def write(page: Path = PAGE, images: Path = IMAGES) -> None:
    """Write the page and the plots from the stored results."""
    results = read_all()
    page.write_text(render(results))
    for name, svg in cluster_page.draw([result for result in results if isinstance(result, Run)]).items():
        (images / name).write_text(svg)
