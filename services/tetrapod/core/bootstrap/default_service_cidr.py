"""The controller of the default ServiceCIDR, which has the networks of --service-cluster-ip-range.

Upstream: pkg/controlplane/controller/defaultservicecidr
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from tetrapod.core.allocators.networks import DEFAULT, SERVICE_CIDRS
from tetrapod.generic.client.events import EventRecorder
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.reads import get_or_none
from tetrapod.machinery.conditions import find_condition
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import now_rfc3339

log = logging.getLogger(__name__)

_NAME: Final = "kubernetes-service-cidr-controller"
_ACTION: Final = "Sync"
_TYPE: Final = {"kind": "ServiceCIDR", "apiVersion": "networking.k8s.io/v1"}
_ERROR: Final = "KubernetesDefaultServiceCIDRError"


class DefaultServiceCIDR:
    """The controller of the default ServiceCIDR.

    It creates a missing one, adds the secondary network of a cluster that becomes dual-stack, and sets the condition
    Ready. Other differences from --service-cluster-ip-range are only reported, once, by events.

    Args:
        client: reads and writes the ServiceCIDR.
        networks: the networks of --service-cluster-ip-range in CIDR notation, the primary one first.
    """

    def __init__(self, client: Client, networks: Sequence[str]) -> None:
        self._client = client
        self._networks = list(networks)
        self._events = EventRecorder(client, _NAME)
        self._reported: set[str] = set()

    async def sync(self) -> None:
        """Create or update the default ServiceCIDR; called periodically.

        Raises:
            StatusError: the ServiceCIDR cannot be read or created.
        """
        stored = await get_or_none(self._client, SERVICE_CIDRS, "", DEFAULT)
        if stored is None:
            stored = await self._create()
        cidrs = (stored.get("spec") or {}).get("cidrs") or []
        if len(self._networks) == 2 and cidrs == self._networks[:1]:
            await self._upgrade(stored)
        else:
            await self._sync_status(stored, cidrs)

    async def _create(self) -> Object:
        """Create the ServiceCIDR, or read the one that another replica has created in the meantime, and return it.

        Raises:
            StatusError: the server rejected a request.
            Unavailable: the server cannot be reached.
        """
        try:
            body = {**_TYPE, "metadata": {"name": DEFAULT}, "spec": {"cidrs": self._networks}}
            return await self._client.create(SERVICE_CIDRS, "", body)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
            return await self._client.get(SERVICE_CIDRS, "", DEFAULT)

    async def _upgrade(self, stored: Object) -> None:
        """Add the secondary network to the stored ServiceCIDR. If the server rejects the update, report it by an event.

        Raises:
            Unavailable: the server cannot be reached.
        """
        try:
            await self._client.update(SERVICE_CIDRS, "", {**stored, "spec": {"cidrs": self._networks}})
        except StatusError as error:
            await self._warn(
                stored,
                _ERROR,
                f"The default ServiceCIDR can not be upgraded from {self._networks[0]} to dual stack "
                f"{_go_list(self._networks)} : {error.message}",
            )

    async def _sync_status(self, stored: Object, cidrs: list[str]) -> None:
        """Set the condition Ready of the ServiceCIDR to True if it is unset, or report an unexpected state by an event.

        Unexpected are networks other than those of the flag, and a condition Ready that another component has set to
        False. A ServiceCIDR that is being deleted is ignored.

        Args:
            stored: the default ServiceCIDR.
            cidrs: its networks in CIDR notation.
        """
        if stored["metadata"].get("deletionTimestamp"):
            return
        if cidrs != self._networks:
            note = (
                f"The default ServiceCIDR {_go_list(cidrs)} does not match the controller flag configurations "
                f"{_go_list(self._networks)}"
            )
            await self._warn_once(stored, "KubernetesDefaultServiceCIDRInconsistent", note)
            return
        ready = find_condition(stored, "Ready") or {}
        if ready.get("status") == "False":
            note = f"Configuration matches, but {ready.get('message') or ''}"
            await self._warn_once(stored, ready.get("reason") or "NotReady", note)
        elif ready.get("status") != "True":
            await self._set_ready(stored)

    async def _set_ready(self, stored: Object) -> None:
        condition = {
            "type": "Ready",
            "status": "True",
            "lastTransitionTime": now_rfc3339(),
            "message": "Kubernetes default Service CIDR is ready",
        }
        body = {**_TYPE, "metadata": {"name": DEFAULT}, "status": {"conditions": [condition]}}
        options = {"subresource": "status", "fieldManager": _NAME, "force": "true"}
        try:
            await self._client.patch(SERVICE_CIDRS, "", DEFAULT, body, type="apply", **options)
        except StatusError as error:
            log.warning("error updating default ServiceCIDR status: %s", error)
            await self._warn(stored, _ERROR, "The default ServiceCIDR Status can not be set to Ready=True")

    async def _warn_once(self, stored: Object, reason: str, note: str) -> None:
        """Report a state of the ServiceCIDR by an event, unless this process has reported it before.

        Args:
            stored: the default ServiceCIDR.
            reason: the reason of the event, by which reports are compared.
            note: the text of the event.
        """
        if reason not in self._reported:
            self._reported.add(reason)
            await self._warn(stored, reason, note)

    async def _warn(self, stored: Object, reason: str, note: str) -> None:
        log.warning("%s: %s", reason, note)
        await self._events.record_warning({**_TYPE, **stored}, reason, _ACTION, note)


def _go_list(texts: list[str]) -> str:
    """Return the texts as Go prints a slice."""
    return f"[{' '.join(texts)}]"
