"""A headless Chromium, and pages that record everything that went wrong in them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright


def find_chromium() -> str:
    """Return the path of Chromium. Skip the test if it is not installed; with REQUIRE_TOOLS, fail it."""
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        reason = "Chromium is not installed (tools/prepare.sh browser)"
        if os.environ.get("REQUIRE_TOOLS"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path


REBOUND = "rebound.example.com"
"""A name that the browser resolves to 127.0.0.1, as a hostile site could arrange."""


expect.set_options(timeout=60_000)  # as `until`


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run Chromium."""
    path = find_chromium()
    with sync_playwright() as playwright:
        # Root cannot use Chromium's sandbox, and containers have little shared memory.
        browser = playwright.chromium.launch(
            executable_path=path,
            args=["--disable-dev-shm-usage", f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1"],
            chromium_sandbox=os.geteuid() != 0,
        )
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """A page of the browser.

    Attributes:
        page: the page.
        problems: errors of its scripts, messages of the console of level error or warning (violations of a
            Content-Security-Policy among them), and dialogs.
        requests: the URLs that it has requested.
    """

    def __init__(self, browser: Browser, **context: Any) -> None:
        self._context = browser.new_context(**context)
        self.page: Page = self._context.new_page()
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on(
            "console",
            lambda message: (
                self.problems.append(f"{message.type}: {message.text}")
                if message.type in ("error", "warning")
                else None
            ),
        )
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", self._dialog)

    def _dialog(self, dialog: Any) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def close(self) -> None:
        self._context.close()


def contrast(page: Page, selector: str) -> float:
    """Return the contrast of the text of an element and the page, by WCAG's formula."""
    # The element is found and read in one step, because a live page replaces its elements.
    colors: list[str] = page.evaluate(
        """selector => [document.querySelector(selector), document.body].map((element, index) => {
            const style = getComputedStyle(element);
            const context = new OffscreenCanvas(1, 1).getContext("2d");
            context.fillStyle = index ? style.backgroundColor : style.color;
            context.fillRect(0, 0, 1, 1);
            return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).join(" ");
        })""",
        selector,
    )

    def luminance(color: str) -> float:
        parts = [int(part) / 255 for part in color.split()]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted(luminance(color) for color in colors)
    return (light + 0.05) / (dark + 0.05)


@contextmanager
def tab(browser: Browser, **context: Any) -> Iterator[Tab]:
    """Open a page in a session of its own. At the end, fail if anything went wrong in it.

    Args:
        browser: the browser.
        context: arguments of Playwright's `new_context`, such as `color_scheme`.
    """
    opened = Tab(browser, **context)
    try:
        yield opened
        assert opened.problems == []
    finally:
        opened.close()
