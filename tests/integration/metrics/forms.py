"""The server as one process and as four services, with all its pages of metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from integration.metrics.conftest import TOKENS
from support.metric_load import TokenClient
from support.server import running
from support.services import NAMES, running_services

FORMS: Final = ("one process", "four services")


class Form(NamedTuple):
    """`front` serves the API; `pages` has the client for the metrics of each service."""

    front: TokenClient
    pages: Mapping[str, TokenClient]


@contextmanager
def serving(form: str, directory: Path) -> Iterator[Form]:
    """Start the server with the tokens of the contract tests."""
    tokens = f"--token-auth-file={TOKENS}"
    if form == "one process":
        with running(directory, tokens) as server:
            front = TokenClient(server.url)
            yield Form(front, {"all": front})
    else:
        with running_services(directory, auth=(tokens,)) as services:
            yield Form(TokenClient(services.url), {name: TokenClient(services.address(name)) for name in NAMES})
