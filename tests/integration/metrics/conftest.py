"""A server for the tests of metrics alone, because requests of other tests would be counted too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from support.server import Server, running

TOKENS: Final = Path(__file__).parents[2] / "contract" / "tokens.csv"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("metrics"), "--token-auth-file", str(TOKENS)) as found:
        yield found
