from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from integration.extensions.cluster import Cluster, running


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with running() as found:
        yield found
