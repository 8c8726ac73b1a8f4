"""`LegacyTokenTracker`, which labels the Secret of a legacy token with the day of its last use.

Upstream: legacy service account token tracking.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime
from typing import Final

from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.reads import get_or_none
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import now

log = logging.getLogger(__name__)

LAST_USED_LABEL: Final = "kubernetes.io/legacy-token-last-used"
_SECRETS: Final = GroupVersionResource("", "v1", "secrets")
_CONFIG_MAPS: Final = GroupVersionResource("", "v1", "configmaps")
_SINCE_NAMESPACE, _SINCE_NAME = "kube-system", "kube-apiserver-legacy-service-account-token-tracking"
_DAY: Final = "%Y-%m-%d"


class LegacyTokenTracker:
    """A recorder of the last use of legacy tokens: one patch a day for each Secret, sent in the background."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def used(self, secret: Object) -> None:
        """Begin to record that the token of the Secret was used today; do not wait for the patch.

        Nothing is sent if the label has today's date already or a patch is in progress. A failure is logged.

        Args:
            secret: the Secret, with its labels.
        """
        meta = secret["metadata"]
        today = now().strftime(_DAY)
        key = (meta["namespace"], meta["name"])
        if (meta.get("labels") or {}).get(LAST_USED_LABEL) == today or key in self._tasks:
            return
        task = self._tasks[key] = asyncio.create_task(self._label(*key, today))
        task.add_done_callback(lambda _: self._tasks.pop(key, None))

    async def _label(self, namespace: str, name: str, today: str) -> None:
        try:
            await self._client.patch(_SECRETS, namespace, name, {"metadata": {"labels": {LAST_USED_LABEL: today}}})
        except (StatusError, Unavailable, OSError) as error:
            log.warning("the last use of the token in secret %s/%s could not be recorded: %s", namespace, name, error)

    async def store_first_day(self) -> None:
        """Store the first day of tracking in a ConfigMap, unless it is stored already.

        A token whose Secret has no label has not been used since that day.

        Raises:
            StatusError: 404 while the namespace does not exist yet, and other errors of the write.
        """
        config_map = await get_or_none(self._client, _CONFIG_MAPS, _SINCE_NAMESPACE, _SINCE_NAME)
        if config_map is None:
            metadata = {"name": _SINCE_NAME, "namespace": _SINCE_NAMESPACE}
            obj = {
                "kind": "ConfigMap",
                "apiVersion": "v1",
                "metadata": metadata,
                "data": {"since": now().strftime(_DAY)},
            }
            await self._client.create(_CONFIG_MAPS, _SINCE_NAMESPACE, obj)
            return
        if not _is_day((config_map.get("data") or {}).get("since", "")):
            await self._client.update(
                _CONFIG_MAPS, _SINCE_NAMESPACE, {**config_map, "data": {"since": now().strftime(_DAY)}}
            )

    async def start(self) -> None:
        """Call `store_first_day` until it succeeds, with exponential backoff up to 10 seconds, then return."""
        wait = 0.05
        while True:
            try:
                await self.store_first_day()
            except (StatusError, Unavailable, OSError) as error:
                log.debug("the tracking of legacy tokens waits: %s", error)
                await asyncio.sleep(wait)
                wait = min(2 * wait, 10.0)
            else:
                return


def _is_day(text: str) -> bool:
    try:
        datetime.strptime(text, _DAY)
    except ValueError:
        return False
    return True
