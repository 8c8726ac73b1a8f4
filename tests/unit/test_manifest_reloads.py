"""Tests of `ManifestSource`: a reload that fails for any reason keeps the current manifests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tetrapod.generic.admission.configuration import Uninitialized
from tetrapod.generic.admission.manifests import metrics
from tetrapod.generic.admission.manifests import source as source_module
from tetrapod.generic.admission.manifests.following import follow_manifests
from tetrapod.generic.admission.manifests.source import Manifests, ManifestSource


def fail(error: Exception) -> Any:
    raise error


@pytest.mark.parametrize(
    ("error", "traced"), [(ValueError("bad"), False), (RecursionError("bad"), False), (KeyError("bad"), True)]
)
@pytest.mark.parametrize("failing", ["load", "convert"])
async def test_a_failed_reload_keeps_the_manifests_and_goes_on(
    error: Exception,
    traced: bool,
    failing: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    loads = 0

    def load(directory: str, known: str | None = None) -> Manifests:
        nonlocal loads
        loads += 1
        if failing == "load" and loads > 1:
            raise error
        return Manifests([], [], str(loads))

    def convert(manifests: Manifests) -> list[str]:
        return [manifests.digest] if loads == 1 else fail(error)

    watching = asyncio.Event()
    failures: list[str] = []

    async def watch(*arguments: object) -> None:
        watching.set()

    monkeypatch.setattr(source_module, "watch", watch)
    monkeypatch.setattr(metrics, "record_failure", failures.append)
    source = ManifestSource("Plugin", "/manifests", load, convert)
    await source.run()
    assert watching.is_set()
    assert source.items == ["1"]
    assert failures == ["Plugin"]
    (record,) = [record for record in caplog.records if record.name == source_module.__name__]
    assert "bad" in record.getMessage()
    assert bool(record.exc_info) is traced


def test_manifests_that_nest_too_deeply_fail_the_start_with_upstreams_text() -> None:
    def load(directory: str, kind: str, known: str | None = None) -> Manifests:
        raise RecursionError("maximum recursion depth exceeded")

    with pytest.raises(Uninitialized, match="failed to load static policy manifests from"):
        follow_manifests(
            "Plugin", "/manifests", "ValidatingAdmissionPolicy", lambda manifests: [], load, lambda name, work: None
        )
