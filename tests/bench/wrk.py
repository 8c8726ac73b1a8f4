"""Run wrk: one thread, 16 connections, over TLS with a bearer token. scripts/report.lua prints its figures in one
line. Over HTTP/2 a Go client sends the same requests instead (http2load): 16 at once on one connection. h2load.py has
another generator for HTTP/2.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from support.goprogram import build_go_program

SCRIPTS = Path(__file__).parent / "scripts"
CONNECTIONS = 16


@dataclass(frozen=True)
class Load:
    """The requests that wrk sends: a GET of `path`, or with `body` the requests of scripts/write.lua.

    Attributes:
        encoding: the header Accept-Encoding; "" for none.
    """

    path: str
    accept: str = "application/json"
    encoding: str = ""
    method: str = "GET"
    content_type: str = ""
    body: str = ""
    modulus: int = 0


@dataclass(frozen=True)
class Figures:
    requests: int
    bytes: int
    seconds: float
    p50_ms: float
    p99_ms: float
    failed: int
    broken: int


def available() -> bool:
    return shutil.which("wrk") is not None


def run(
    url: str, token: str, load: Load, seconds: float, directory: Path, *, start: int = 0, connections: int = CONNECTIONS
) -> Figures:
    """Load the server for some seconds (wrk accepts whole seconds only)."""
    return figures(begin(url, token, load, seconds, directory, start=start, connections=connections))


def begin(
    url: str, token: str, load: Load, seconds: float, directory: Path, *, start: int, connections: int
) -> subprocess.Popen[str]:
    """Start wrk."""
    script = directory / "script.lua"
    parts = [(SCRIPTS / "report.lua").read_text()]
    arguments: list[str] = []
    if load.body:
        parts.append((SCRIPTS / "write.lua").read_text())
        body = directory / "body"
        body.write_text(load.body)
        arguments = [load.method, load.content_type, str(start), str(load.modulus), str(body)]
    script.write_text("\n".join(parts))
    command = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "30s", "-s", str(script)]
    command += [
        "-H",
        f"Authorization: Bearer {token}",
        "-H",
        f"Accept: {load.accept}",
        *(("-H", f"Accept-Encoding: {load.encoding}") if load.encoding else ()),
        f"{url}{load.path}",
        "--",
        *arguments,
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@cache
def http2load() -> Path:
    """Build the client for HTTP/2, and return the program."""
    return build_go_program(Path(__file__).parent / "http2load", "http2load")


def run_http2(url: str, token: str, load: Load, seconds: float, directory: Path, *, start: int = 0) -> Figures:
    """Load the server over HTTP/2 for some seconds."""
    body = directory / "body"
    body.write_text(load.body)
    command = [str(http2load()), f"{url}{load.path}", token]
    command += [load.accept, load.encoding, load.method, load.content_type, str(start), str(load.modulus)]
    command += [str(body) if load.body else "", str(CONNECTIONS), str(max(1, round(seconds)))]
    return figures(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))


def figures(process: subprocess.Popen[str]) -> Figures:
    """Wait until wrk or http2load ends."""
    output, _ = process.communicate()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args, output)
    line = next(line for line in output.splitlines() if line.startswith("BENCH "))
    found = json.loads(line.removeprefix("BENCH "))
    return Figures(
        requests=found["requests"],
        bytes=found["bytes"],
        seconds=found["duration"] / 1e6,
        p50_ms=found["p50"] / 1e3,
        p99_ms=found["p99"] / 1e3,
        failed=found["status"],
        broken=found["broken"],
    )
