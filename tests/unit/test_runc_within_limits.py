"""Tests of tools/runc_within_limits.py: the capabilities that it removes from configurations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import runc_within_limits
from runc_within_limits import limit, missing

_ALL = {"bounding": ["CAP_CHOWN", "CAP_SYS_RESOURCE"], "effective": ["CAP_SYS_RESOURCE"], "permitted": ["CAP_CHOWN"]}
_REST = {"bounding": ["CAP_CHOWN"], "effective": [], "permitted": ["CAP_CHOWN"]}


@pytest.fixture
def without_sys_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runc_within_limits, "missing", lambda: {"CAP_SYS_RESOURCE"})


@pytest.mark.usefixtures("without_sys_resource")
def test_missing_capabilities_are_removed_from_the_configuration_of_a_container(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"root": {"path": "/"}, "process": {"args": ["true"], "capabilities": _ALL}}))
    limit(path)
    assert json.loads(path.read_text()) == {"root": {"path": "/"}, "process": {"args": ["true"], "capabilities": _REST}}


@pytest.mark.usefixtures("without_sys_resource")
def test_missing_capabilities_are_removed_from_the_configuration_of_a_process(tmp_path: Path) -> None:
    path = tmp_path / "process.json"
    path.write_text(json.dumps({"args": ["true"], "capabilities": _ALL}))
    limit(path)
    assert json.loads(path.read_text()) == {"args": ["true"], "capabilities": _REST}


@pytest.mark.usefixtures("without_sys_resource")
def test_a_process_without_capabilities_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "process.json"
    path.write_text(json.dumps({"args": ["true"]}))
    limit(path)
    assert json.loads(path.read_text()) == {"args": ["true"]}


def test_capabilities_in_the_bounding_set_are_not_missing() -> None:
    status = Path("/proc/self/status").read_text()
    (bounding,) = (int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapBnd:"))
    names = runc_within_limits.NAMES.split()
    assert len(missing()) == len(names) - (bounding & (1 << len(names)) - 1).bit_count()
