"""The controller that deletes the content of terminating namespaces and then removes their finalizer.

A group-version whose server does not answer is skipped, where upstream stops: an unavailable extension server must not
block every namespace of the cluster (see docs/explanation/design.md).
Upstream: pkg/controller/namespace/deletion/namespaced_resources_deleter.go.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from tetrapod.core.controllers.discovered import Discovered, discover
from tetrapod.core.controllers.service_accounts import NAMESPACES
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import now_rfc3339

_FINALIZER: Final = "kubernetes"
_PODS: Final = GroupVersionResource("", "v1", "pods")
_NEEDED: Final = frozenset({"delete", "list"})
_RETRY: Final = 1.0
"""Seconds until a namespace that is not empty yet is examined again."""
_OK: Final = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


class NamespaceController:
    """The controller that empties terminating namespaces and then removes the finalizer `kubernetes` from their spec.

    Args:
        namespaces: an informer of all Namespaces that other controllers use too; the caller runs it.
    """

    name = "namespace-controller"

    def __init__(self, client: Client, namespaces: Informer) -> None:
        self._client = client
        self._namespaces = namespaces
        self._queue: WorkQueue[str] = WorkQueue(self.name, self._sync)
        self._namespaces.handlers.append(self._on_namespace)

    async def run(self) -> None:
        await self._namespaces.synced.wait()
        await self._queue.run(5)

    def _on_namespace(self, old: Object | None, new: Object | None) -> None:
        if new is not None and new["metadata"].get("deletionTimestamp"):
            self._queue.add(new["metadata"]["name"])

    async def _sync(self, name: str) -> None:
        try:
            namespace = await self._client.get(NAMESPACES, "", name)
        except StatusError as error:
            if error.code == 404:
                return
            raise
        if not namespace["metadata"].get("deletionTimestamp") or _FINALIZER not in (namespace.get("spec") or {}).get(
            "finalizers", ()
        ):
            return
        outcome = await self._empty(name, namespace)
        if outcome.conditions_changed(namespace):
            await self._write_conditions(name, outcome)
        if not outcome.done:
            self._queue.add_after(name, _RETRY)
            return
        await self._finalize(name)

    async def _empty(self, name: str, namespace: Object) -> DeletionOutcome:
        """Try once to delete all objects of the namespace, pods first, and return what remains.

        Error responses to deletions are in the result.

        Raises:
            Unavailable: the server did not respond.
        """
        discovered = await discover(self._client)
        outcome = DeletionOutcome(discovered)
        # Pods first: the objects that they use should outlive them.
        resources = [r for r in discovered.resources if r.namespaced and r.preferred and r.verbs >= _NEEDED]
        await self._delete_all(_PODS, name, outcome)
        await asyncio.gather(
            *(
                self._delete_all(r.gvr, name, outcome, "deletecollection" in r.verbs)
                for r in resources
                if r.gvr != _PODS
            )
        )
        return outcome

    async def _delete_all(
        self, gvr: GroupVersionResource, namespace: str, outcome: DeletionOutcome, collection: bool = True
    ) -> None:
        """Delete all objects of a resource in the namespace, with background propagation.

        Error responses, remaining objects and their finalizers are recorded in `outcome`. A resource that is not served
        is ignored.

        Args:
            gvr: the resource.
            namespace: the name of the namespace.
            outcome: the result of this attempt to empty the namespace, which is modified.
            collection: whether the resource supports deletecollection; if not, each object is deleted.

        Raises:
            Unavailable: the server did not respond.
        """
        try:
            page = await self._client.list(gvr, namespace)
            items = page.get("items") or []
            if not items:
                return
            if collection:
                await self._client.delete_collection(gvr, namespace, {"propagationPolicy": "Background"})
            else:
                for item in items:
                    await self._delete_one(gvr, namespace, item["metadata"]["name"])
            remaining = (await self._client.list(gvr, namespace)).get("items") or []
        except StatusError as error:
            if error.code not in (404, 405):
                outcome.failures.append(str(error))
            return
        if remaining:
            outcome.remaining[f"{gvr.resource}.{gvr.group}"] = len(remaining)
            for item in remaining:
                for finalizer in item["metadata"].get("finalizers") or ():
                    outcome.finalizers[finalizer] = outcome.finalizers.get(finalizer, 0) + 1

    async def _delete_one(self, gvr: GroupVersionResource, namespace: str, name: str) -> None:
        try:
            await self._client.delete(gvr, namespace, name, {"propagationPolicy": "Background"})
        except StatusError as error:
            if error.code != 404:
                raise

    async def _write_conditions(self, name: str, outcome: DeletionOutcome) -> None:
        namespace = await self._client.get(NAMESPACES, "", name)
        status = namespace.setdefault("status", {})
        status["phase"] = "Terminating"
        status["conditions"] = outcome.merged(status.get("conditions") or [])
        await self._client.update(NAMESPACES, "", namespace, subresource="status")

    async def _finalize(self, name: str) -> None:
        namespace = await self._client.get(NAMESPACES, "", name)
        spec = namespace.setdefault("spec", {})
        spec["finalizers"] = [f for f in spec.get("finalizers") or () if f != _FINALIZER]
        await self._client.update(NAMESPACES, "", namespace, subresource="finalize")


class DeletionOutcome:
    """The result of one attempt to empty a namespace, and the namespace conditions that report it.

    Attributes:
        stale: group-versions that were skipped, because their server did not answer.
        failures: error texts.
        remaining: numbers of remaining objects by resource.
        finalizers: numbers of remaining objects by finalizer.

    Args:
        discovered: the resources that were found; its stale group-versions are skipped.
    """

    def __init__(self, discovered: Discovered) -> None:
        self.stale = discovered.stale
        self.failures: list[str] = []
        self.remaining: dict[str, int] = {}
        self.finalizers: dict[str, int] = {}

    @property
    def done(self) -> bool:
        """Whether nothing failed and nothing remains. Group-versions in `stale` are not considered."""
        return not self.failures and not self.remaining

    def _wanted(self) -> dict[str, tuple[str, str, str]]:
        """Return the conditions that the namespace should have, by type, each as (status, reason, message)."""
        conditions = {kind: ("False", reason, message) for kind, (reason, message) in _OK.items()}
        if self.stale:
            details = ", ".join(f"{name}: stale GroupVersion discovery: {name}" for name in sorted(self.stale))
            conditions["NamespaceDeletionDiscoveryFailure"] = (
                "True",
                "DiscoveryFailed",
                f"Discovery failed for some groups, {len(self.stale)} failing: "
                f"unable to retrieve the complete list of server APIs: {details}",
            )
        if self.failures:
            text = ", ".join(sorted(set(self.failures)))
            conditions["NamespaceDeletionContentFailure"] = (
                "True",
                "ContentDeletionFailed",
                f"Failed to delete all resource types, {len(self.failures)} remaining: {text}",
            )
        if self.remaining:
            details = ", ".join(
                f"{gvr} has {count} resource instances" for gvr, count in sorted(self.remaining.items())
            )
            conditions["NamespaceContentRemaining"] = (
                "True",
                "SomeResourcesRemain",
                f"Some resources are remaining: {details}",
            )
        if self.finalizers:
            details = ", ".join(
                f"{name} in {count} resource instances" for name, count in sorted(self.finalizers.items())
            )
            conditions["NamespaceFinalizersRemaining"] = (
                "True",
                "SomeFinalizersRemain",
                f"Some content in the namespace has finalizers remaining: {details}",
            )
        return conditions

    def conditions_changed(self, namespace: Object) -> bool:
        """Return whether the namespace's conditions differ from this result, so that they must be written."""
        existing = (namespace.get("status") or {}).get("conditions") or []
        return _compared(self.merged(existing)) != _compared(existing)

    def merged(self, old_conditions: list[Object]) -> list[Object]:
        """Return the namespace's conditions with those of this result; conditions of other types are kept.

        lastTransitionTime changes only with status, reason or message.
        """
        by_type = {c.get("type"): c for c in old_conditions}
        merged = [c for c in old_conditions if c.get("type") not in _OK]
        for condition_type, (status, reason, message) in self._wanted().items():
            existing = by_type.get(condition_type)
            unchanged = existing is not None and (
                existing.get("status"),
                existing.get("reason"),
                existing.get("message"),
            ) == (
                status,
                reason,
                message,
            )
            transition_time = existing["lastTransitionTime"] if unchanged and existing is not None else now_rfc3339()
            merged.append(
                {
                    "type": condition_type,
                    "status": status,
                    "lastTransitionTime": transition_time,
                    "reason": reason,
                    "message": message,
                }
            )
        return merged


def _compared(conditions: list[Object]) -> dict[Any, tuple[Any, ...]]:
    """Return status, reason and message of conditions by type, which decide whether conditions are equal."""
    return {c.get("type"): (c.get("status"), c.get("reason"), c.get("message")) for c in conditions}
