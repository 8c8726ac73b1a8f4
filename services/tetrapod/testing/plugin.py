"""The pytest plugin with the fixtures `tetrapod` and `tetrapod_session`.

pytest loads it by entry point in every project, so imports are deferred until first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tetrapod.generic.aggregated import Kind
    from tetrapod.testing.server import Server, State


@pytest.fixture(scope="session")
def tetrapod_flags() -> Sequence[str]:
    """Return the flags of the server, which are those of `tetrapod up`. Override this fixture in conftest.py."""
    return ()


@pytest.fixture(scope="session")
def tetrapod_manifests() -> Any:
    """Return manifests, files or directories to apply before all tests, for example CustomResourceDefinitions.

    Override this fixture in conftest.py.
    """
    return ()


@pytest.fixture(scope="session")
def tetrapod_kinds() -> Sequence[Kind]:
    """Return kinds that an aggregated API server serves in all tests. Override this fixture in conftest.py."""
    return ()


@pytest.fixture(scope="session")
def tetrapod_session(
    tetrapod_flags: Sequence[str], tetrapod_kinds: Sequence[Kind], tetrapod_manifests: Any
) -> Iterator[Server]:
    """Provide the server of the session, with the kinds served and the manifests applied.

    It is not reset between tests.
    """
    from tetrapod.testing.server import Server

    with Server(tetrapod_flags) as server:
        if tetrapod_kinds:
            server.serve(tetrapod_kinds)
        server.apply(tetrapod_manifests)
        yield server


@pytest.fixture(scope="session")
def _tetrapod_initial_state(tetrapod_session: Server) -> State:
    return tetrapod_session.snapshot()


@pytest.fixture
def tetrapod(tetrapod_session: Server, _tetrapod_initial_state: State) -> Iterator[Server]:
    """Provide the server of the session, reset to its initial state before each test.

    Forks are closed after the test.
    """
    tetrapod_session.reset(_tetrapod_initial_state)
    yield tetrapod_session
    tetrapod_session.close_forks()
