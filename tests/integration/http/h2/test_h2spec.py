"""Conformance to RFC 9113 and RFC 7541, by h2spec (tools/h2spec.sh builds it)."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from integration.http.h2.conftest import Serve2
from tetrapod.generic.http.request import Request, Response

TOOL = Path(__file__).parents[4] / "tools/h2spec.sh"


@pytest.fixture(scope="session")
def h2spec() -> Path:
    directory = Path(subprocess.run([TOOL, "--where"], capture_output=True, text=True, check=True).stdout.strip())
    if not (directory / "h2spec").exists():
        pytest.skip("h2spec is not built: tools/prepare.sh builds it")
    return directory / "h2spec"


async def handler(request: Request) -> Response:
    await request.body.read(1 << 20)
    return Response(200, [(b"content-type", b"text/plain")], b"a body of some bytes")


async def test_all_cases_pass_the_strict_ones_included(serve2: Serve2, h2spec: Path) -> None:
    server = await serve2(handler)
    run = await asyncio.create_subprocess_exec(
        h2spec,
        *("--host", "localhost", "--port", str(server.port), "--tls", "--insecure", "--strict", "--timeout", "5"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    report = (await run.communicate())[0].decode()
    assert run.returncode == 0, report[report.find("Failures") :]
    assert "146 tests, 146 passed, 0 skipped, 0 failed" in report
