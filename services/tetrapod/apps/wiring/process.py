"""What a process needs before a server runs in it: files for its connections, and a log that takes no end of them for an accident."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
from collections.abc import Mapping
from typing import Any

from tetrapod.machinery.golang.quoting import go_quote

log = logging.getLogger(__name__)


def raise_file_limit() -> None:
    """Raise the limit of open files to the hard limit, as Go does (os/rlimit.go). A watch needs one or two files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def quiet_ends(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Handle exceptions of the event loop. A client that disconnects during the TLS handshake is logged in one line, as in Go."""
    transport = context.get("transport")
    if "SSL" in str(context.get("message", "")) and transport is not None and transport.is_closing():
        log.info("TLS connection lost: %s", context.get("exception"))
        return
    loop.default_exception_handler(context)


def tell_flags(flags: Mapping[str, str]) -> None:
    """One line each, at -v 2 and above (upstream: component-base/cli/flag, PrintFlags)."""
    if not log.isEnabledFor(logging.INFO):
        return
    for name, value in sorted(flags.items()):
        log.info("FLAG: --%s=%s", name, go_quote(value))
