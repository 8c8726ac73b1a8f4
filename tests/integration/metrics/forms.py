"""The server in its two forms, with every page of metrics that it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from integration.metrics.conftest import TOKENS
from support.metric_load import Asking
from support.server import running
from support.services import NAMES, running_services

FORMS: Final = ("one process", "four services")


class Form(NamedTuple):
    """`front` takes requests of the API; `pages` has who is asked for the metrics of each service."""

    front: Asking
    pages: Mapping[str, Asking]


@contextmanager
def serving(form: str, directory: Path) -> Iterator[Form]:
    """Start the server. The tokens of the contract tests are valid."""
    tokens = f"--token-auth-file={TOKENS}"
    if form == "one process":
        with running(directory, tokens) as server:
            front = Asking(server.url)
            yield Form(front, {"all": front})
    else:
        with running_services(directory, auth=(tokens,)) as services:
            yield Form(Asking(services.url), {name: Asking(services.address(name)) for name in NAMES})
