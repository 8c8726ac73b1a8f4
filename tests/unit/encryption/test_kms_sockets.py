"""Connections to KMS plugins, with the event loop of the servers."""

from __future__ import annotations

from pathlib import Path

import pytest
import uvloop

from support.kms import KmsPlugin
from tetrapod.generic.storage.encryption.kms.service import KmsService


@pytest.mark.parametrize("abstract", [False, True])
def test_a_plugin_listens_on_a_unix_socket(tmp_path: Path, abstract: bool) -> None:
    plugin = KmsPlugin(tmp_path, abstract=abstract)

    async def version() -> str:
        service = KmsService("plugin", plugin.endpoint, 5)
        try:
            return (await service.status()).version
        finally:
            await service.close()

    plugin.start()
    try:
        assert uvloop.run(version()) == "v2"
    finally:
        plugin.stop()
