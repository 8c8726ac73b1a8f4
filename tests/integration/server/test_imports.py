"""Modules of unused features are not imported, because imports dominate the start and each module stays in memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.server import environment

OPTIONAL = {
    "tetrapod.generic.endpoints.cbor_bodies",
    "tetrapod.generic.audit.context",
    "tetrapod.generic.audit.policy_file",
    "tetrapod.generic.openapi.v2",
    "tetrapod.generic.openapi.v3",
    "tetrapod.generic.proxy.streamtranslator",
    "tetrapod.generic.observability.tracing.exporter",
    "tetrapod.generic.storage.encoded_backend",
    "tetrapod.generic.storage.protobuf_values",
    "tetrapod.machinery.cbor",
    "yaml",
}
OF_SERVICES = {
    "tetrapod.auth.service",
    "tetrapod.core.service",
    "tetrapod.extensions.service",
    "tetrapod.aggregator.service",
}


@pytest.mark.parametrize(
    ("assembly", "own"),
    [
        ("embedded", OF_SERVICES),
        ("aggregator", {"tetrapod.aggregator.service"}),
        ("core", {"tetrapod.core.service"}),
        ("extensions", {"tetrapod.extensions.service"}),
        ("auth", {"tetrapod.auth.service"}),
    ],
)
def test_a_server_imports_what_it_serves_and_no_feature_that_is_off(assembly: str, own: set[str]) -> None:
    program = f"import sys, tetrapod.apps.{assembly}; print(*sys.modules)"
    imported = set(
        subprocess.run(
            [sys.executable, "-c", program], env=environment(), check=True, capture_output=True, text=True
        ).stdout.split()
    )
    assert imported & OPTIONAL == set()
    assert imported & OF_SERVICES == own
    if assembly == "embedded":
        assert "google.protobuf" not in imported, "etcd's client, over SQLite"
