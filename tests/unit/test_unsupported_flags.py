"""Tests of flags that need a function of Linux, on systems that lack it."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tetrapod.apps.options.options import Options
from tetrapod.apps.workers.program import run_program, unsupported
from tetrapod.cli.proxy import proxy
from tetrapod.generic.dialing import unix_socket


def test_linux_supports_all_flags(tmp_path: Path) -> None:
    options = Options().with_flags({"permit-port-sharing": True, "unix-socket": str(tmp_path / "s"), "workers": 2})
    assert unsupported(options) == ""


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("workers", 2, "--workers=2 needs Linux"),
        ("permit-port-sharing", True, "--permit-port-sharing: this system has no SO_REUSEPORT"),
        ("unix-socket", "/run/core.sock", "--unix-socket=/run/core.sock needs Linux"),
    ],
)
def test_a_flag_is_rejected_where_the_system_lacks_what_it_needs(
    flag: str, value: object, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delattr(socket, "SO_REUSEPORT")
    monkeypatch.delattr(socket, "SO_PEERCRED")
    assert unsupported(Options()) == ""
    with pytest.raises(click.UsageError, match=message):
        run_program(Options().with_flags({flag: value}), lambda options: pytest.fail("must not start"))


def test_the_kube_proxy_runs_on_linux_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    result = CliRunner().invoke(proxy, [])
    assert result.exit_code == 1
    assert "runs on Linux only" in result.output


def test_unix_sockets_are_rejected_where_python_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")
    with pytest.raises(OSError, match="not supported on this system"):
        unix_socket()
