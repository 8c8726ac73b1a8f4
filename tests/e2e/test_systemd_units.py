"""deploy/systemd: systemd accepts the units, they are hardened, and the command line accepts their commands."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import parsed_command
from support.helm import ROOT
from tetrapod.generic.certificates.services import write_service_certificates

UNITS = ROOT / "deploy/systemd"
OURS = sorted(path.name for path in UNITS.glob("*.service") if "/opt/tetrapod" in path.read_text())
FOUR = ("aggregator", "core", "extensions", "auth")


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """Return copies of the units, whose commands name an installed program."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not on this machine")
    for path in UNITS.iterdir():
        (tmp_path / path.name).write_text(path.read_text().replace("/opt/tetrapod/bin/tetrapod", sys.executable))
    return tmp_path


def analyze(*args: str) -> str:
    done = subprocess.run(["systemd-analyze", *args], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


def test_systemd_accepts_the_units(units: Path) -> None:
    assert analyze("verify", "--man=no", *(str(path) for path in sorted(units.iterdir()))) == ""


def test_units_are_hardened(units: Path) -> None:
    for name in OURS:
        output = analyze("security", "--offline=true", "--no-pager", str(units / name))
        (level,) = re.findall(r"Overall exposure level for \S+: ([0-9.]+)", output)
        assert float(level) < 2, output


@pytest.mark.parametrize("name", OURS)
def test_the_command_line_accepts_the_arguments_of_a_unit(name: str) -> None:
    text = (UNITS / name).read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^ExecStart=/opt/tetrapod/bin/tetrapod (.*)$", text, re.MULTILINE)
    words = [re.sub(r"\$\{\w+\}", "1.example.com", word) for word in shlex.split(line) if not word.startswith("$")]
    assert parsed_command(words) in (*FOUR, "certs", "up")


def test_services_get_only_their_own_credentials(tmp_path: Path) -> None:
    write_service_certificates(tmp_path, ["localhost"])
    for service in FOUR:
        text = (UNITS / f"tetrapod-{service}.service").read_text()
        handed = dict(re.findall(r"^LoadCredential=(\S+):/var/lib/tetrapod-certs/(\S+)$", text, re.MULTILINE))
        assert handed == {path.name: f"{service}/{path.name}" for path in (tmp_path / service).iterdir()}
        assert "DynamicUser=yes" in text
