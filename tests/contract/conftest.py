"""One server for all recordings, and one for those that are replayed over HTTP/2.

Some scenarios leave a namespace behind that terminates until a kubelet reports, so none is replayed twice on a server.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from contract.replaying import FLAGS
from support.server import Server, running


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("contract"), *FLAGS) as server:
        yield server


@pytest.fixture(scope="session")
def server_of_http2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("contract-http2"), *FLAGS) as server:
        yield server
