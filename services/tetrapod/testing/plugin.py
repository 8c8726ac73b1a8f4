"""The pytest plugin: fixtures `tetrapod` and `tetrapod_session`. Loaded by entry point; imports nothing until one is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tetrapod.testing.server import Server, State


@pytest.fixture(scope="session")
def tetrapod_flags() -> Sequence[str]:
    """Flags of the server (those of `tetrapod up`). Override it in conftest.py."""
    return ()


@pytest.fixture(scope="session")
def tetrapod_manifests() -> Any:
    """What every test finds: manifests, files or directories (definitions of custom resources, say). Override it in conftest.py."""
    return ()


@pytest.fixture(scope="session")
def tetrapod_session(tetrapod_flags: Sequence[str], tetrapod_manifests: Any) -> Iterator[Server]:
    """One server for all tests, as they leave it."""
    from tetrapod.testing.server import Server

    with Server(tetrapod_flags) as server:
        server.apply(tetrapod_manifests)
        yield server


@pytest.fixture(scope="session")
def _tetrapod_beginning(tetrapod_session: Server) -> State:
    return tetrapod_session.snapshot()


@pytest.fixture
def tetrapod(tetrapod_session: Server, _tetrapod_beginning: State) -> Iterator[Server]:
    """The session's server, in the state it had before the first test; forks that the test makes go with it."""
    tetrapod_session.reset(_tetrapod_beginning)
    yield tetrapod_session
    tetrapod_session.close_forks()
