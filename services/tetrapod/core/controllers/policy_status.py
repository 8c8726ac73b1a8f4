"""The controller that type-checks the expressions of ValidatingAdmissionPolicies and reports warnings in their status.

The warnings have no effect on evaluation.
Upstream: pkg/controller/validatingadmissionpolicystatus and
k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking.go.
"""

from __future__ import annotations

import asyncio
from typing import Final

from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError

_MANAGER: Final = "validatingadmissionpolicy-status"
POLICIES: Final = GroupVersionResource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies")


class PolicyStatus:
    """The controller that sets status.typeChecking and status.observedGeneration of ValidatingAdmissionPolicies."""

    name = "validatingadmissionpolicy-status-controller"

    def __init__(self, client: Client) -> None:
        self._client = client
        self._policies = Informer(client, POLICIES)
        self._queue: WorkQueue[str] = WorkQueue(self.name, self._sync)
        self._policies.handlers.append(self._on_policy)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._policies.run())
            await self._policies.synced.wait()
            group.create_task(self._queue.run())

    def _on_policy(self, old: Object | None, new: Object | None) -> None:
        if new is not None and not _observed(new):
            self._queue.add(new["metadata"]["name"])

    async def _sync(self, name: str) -> None:
        policy = self._policies.get("", name)
        if policy is None or _observed(policy):
            return
        from tetrapod.core.controllers.policy_types import check

        warnings = await check(self._client, policy)
        checked = {"expressionWarnings": warnings} if warnings else {}
        status = {"observedGeneration": policy["metadata"].get("generation", 0), "typeChecking": checked}
        config = {
            "apiVersion": str(POLICIES.group_version),
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
        }
        query = {"fieldManager": _MANAGER, "force": "true"}
        try:
            await self._client.patch(
                POLICIES, "", name, {**config, "status": status}, type="apply", subresource="status", **query
            )
        except StatusError as error:
            if error.code != 404:
                raise


def _observed(policy: Object) -> bool:
    """Return whether status.observedGeneration is the policy's generation, so that nothing is left to do."""
    generation: int = policy["metadata"].get("generation", 0)
    return generation <= int((policy.get("status") or {}).get("observedGeneration") or 0)
