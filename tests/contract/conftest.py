"""One server for all recordings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from contract.replaying import FLAGS
from support.server import Server, running


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("contract"), *FLAGS) as server:
        yield server
