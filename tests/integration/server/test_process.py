"""Effects of the limits a server is started with, and of clients that disconnect during the TLS handshake."""

from __future__ import annotations

import asyncio
import logging
import resource
import subprocess
import sys
from typing import Any

import pytest

from support.server import environment
from tetrapod.apps.process import handle_loop_exception

SHOW = (
    "import resource; from tetrapod.apps.process import raise_file_limit; "
    "raise_file_limit(); print(resource.getrlimit(resource.RLIMIT_NOFILE))"
)


def test_all_the_files_that_the_hard_limit_allows_are_taken() -> None:
    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 512))

    out = subprocess.run(
        [sys.executable, "-c", SHOW], env=environment(), preexec_fn=few, capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "(512, 512)"


class Transport(asyncio.Transport):
    def __init__(self, closing: bool) -> None:
        super().__init__()
        self._closing = closing

    def is_closing(self) -> bool:
        return self._closing


@pytest.mark.parametrize(
    ("message", "closing", "error", "level"),
    [
        ("SSL protocol", True, "closed", "INFO"),
        ("SSL protocol", False, "unable to perform operation; the handler is closed", "INFO"),
        ("SSL protocol", False, "x", "ERROR"),
        ("x", True, "closed", "ERROR"),
        ("x", False, "the handler is closed", "ERROR"),
    ],
)
async def test_a_client_that_goes_in_the_middle_of_tls_is_a_line(
    caplog: pytest.LogCaptureFixture, message: str, closing: bool, error: str, level: str
) -> None:
    caplog.set_level(logging.INFO)
    context: dict[str, Any] = {
        "message": f"Fatal error on {message}",
        "transport": Transport(closing),
        "exception": RuntimeError(error),
    }
    handle_loop_exception(asyncio.get_running_loop(), context)
    assert [(record.levelname, bool(record.exc_info)) for record in caplog.records] == [(level, level == "ERROR")]
