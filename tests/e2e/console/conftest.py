"""A browser, and the two forms of Tetrapod.

The browser is not shared by modules: while it runs, its library has an event loop in this thread, and asynchronous
tests of other modules could not run.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from support.browser import chromium
from support.server import Server, running
from support.services import Services, running_services


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def one(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("one") / "data") as found:
        yield found


@pytest.fixture(scope="module")
def four(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    with running_services(tmp_path_factory.mktemp("four")) as found:
        yield found
