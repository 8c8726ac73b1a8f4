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
    """A watch is a file or two, and the usual soft limit 1024: take what the hard one allows, as Go does (os/rlimit.go)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def quiet_ends(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """The loop's exception handler. A client that goes in the middle of TLS is a line, as in Go's net/http; all else is as ever."""
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
