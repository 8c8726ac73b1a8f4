"""A Go server, as aggregated API servers are, that answers with what it has received."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from support.goprogram import build_go_program
from tetrapod.generic.certificates import Pki

ONLY_HTTP2: Final = "only-http2"


@contextmanager
def go_server(pki: Pki, *arguments: str) -> Iterator[int]:
    """Run the server (http2_go/main.go) with a certificate of `pki`, and yield its port.

    Args:
        pki: the certificates.
        arguments: `ONLY_HTTP2` for a server that speaks no HTTP/1.1.
    """
    program = build_go_program(Path(__file__).parent / "http2_go", "http2server")
    process = subprocess.Popen([program, *map(str, pki.serving), *arguments], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
