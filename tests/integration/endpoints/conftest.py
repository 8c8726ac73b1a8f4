from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from integration.endpoints.serving import Api, serving


@pytest_asyncio.fixture
async def api() -> AsyncIterator[Api]:
    async with serving() as api:
        yield api
