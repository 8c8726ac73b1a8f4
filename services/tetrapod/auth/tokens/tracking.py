"""Notes on a legacy token's secret the day on which it was last used (upstream: legacy service account token tracking)."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from tetrapod.generic.client.interface import Client
from tetrapod.generic.storage.backend import Unavailable
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import now

log = logging.getLogger(__name__)

LAST_USED_LABEL: Final = "kubernetes.io/legacy-token-last-used"
_SECRETS: Final = GroupVersionResource("", "v1", "secrets")


class LegacyTokenTracker:
    """One patch a day for each secret, made while the request goes on."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def used(self, secret: Object) -> None:
        meta = secret["metadata"]
        today = now().strftime("%Y-%m-%d")
        key = (meta["namespace"], meta["name"])
        if (meta.get("labels") or {}).get(LAST_USED_LABEL) == today or key in self._tasks:
            return
        task = self._tasks[key] = asyncio.create_task(self._note(*key, today))
        task.add_done_callback(lambda _: self._tasks.pop(key, None))

    async def _note(self, namespace: str, name: str, today: str) -> None:
        try:
            await self._client.patch(_SECRETS, namespace, name, {"metadata": {"labels": {LAST_USED_LABEL: today}}})
        except (StatusError, Unavailable, OSError) as error:
            log.warning("the last use of the token in secret %s/%s could not be noted: %s", namespace, name, error)
