"""`KmsV1Probe`: the health check of a KMS v1 plugin.

Upstream: staging/src/k8s.io/apiserver/pkg/server/options/encryptionconfig/config.go, kmsPluginProbe
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from tetrapod.generic.storage.encryption.kms_v1.service import KmsV1Service
from tetrapod.generic.storage.encryption.transformer import TransformError
from tetrapod.machinery.failure import Failure

_HEALTHY_SECONDS: Final = 20.0
_UNHEALTHY_SECONDS: Final = 3.0
_DATA: Final = b"ping"


class KmsV1Probe:
    """The health check of one KMS v1 plugin, which encrypts and decrypts test data.

    Args:
        name: the name of the plugin in the EncryptionConfiguration.
        service: the client of the plugin.
    """

    def __init__(self, name: str, service: KmsV1Service) -> None:
        self.name = name
        self.service = service
        self._checking = asyncio.Lock()
        self._checked = float("-inf")
        self._valid_for = 0.0
        self._error: Failure[TransformError] | None = None

    async def check(self) -> None:
        """Encrypt and decrypt test data; raise TransformError if the plugin fails.

        Results are cached for 20 seconds if healthy, else for 3. As upstream, a cached error is the plugin's own,
        without the name of the provider.
        """
        async with self._checking:
            if time.monotonic() - self._checked < self._valid_for:
                if self._error is not None:
                    raise self._error.error()
                return
            section = "encrypt"
            try:
                sealed = await self.service.encrypt(_DATA)
                section = "decrypt"
                await self.service.decrypt(sealed)
            except TransformError as error:
                self._keep(error, _UNHEALTHY_SECONDS)
                text = f"failed to perform {section} section of the healthz check for KMS Provider {self.name}"
                raise TransformError(f"{text}, error: {error}", error.status) from error
            self._keep(None, _HEALTHY_SECONDS)

    def _keep(self, error: TransformError | None, seconds: float) -> None:
        self._error = None if error is None else Failure(error)
        self._checked = time.monotonic()
        self._valid_for = seconds
