"""The controller that deletes the custom resources of a deleted definition, and then removes its finalizer.

Upstream: apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from tetrapod.extensions.conditions import (
    CLEANUP_FINALIZER,
    ESTABLISHED,
    TERMINATING,
    condition,
    equivalent,
    put,
    remove,
)
from tetrapod.extensions.controllers.controller import CrdController
from tetrapod.extensions.crds import Crd, Crds
from tetrapod.extensions.custom.serving import Serving
from tetrapod.generic.client.interface import Client
from tetrapod.generic.registry.context import Context
from tetrapod.generic.storage.queries import ListQuery
from tetrapod.machinery.conditions import find_condition, is_true
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.status import StatusError

OVERLAPPING: Final = frozenset(
    {
        GroupResource("apiregistration.k8s.io", "apiservices"),
        GroupResource("apiextensions.k8s.io", "customresourcedefinitions"),
    }
)
"""Built-in resources whose storage prefix a definition of the same name would share."""
_CHECK_AGAIN: Final = 1.0
_DELETE_AGAIN: Final = 60
"""The number of checks after which remaining objects are deleted again, because a slower replica may have created
some.
"""
_IN_PROGRESS: Final = condition(
    TERMINATING, "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"
)
_COMPLETED: Final = condition(TERMINATING, "False", "InstanceDeletionCompleted", "removed all instances")
_NEVER: Final = condition(TERMINATING, "False", "NeverEstablished", "resource was never established")
_OVERLAP: Final = condition(
    TERMINATING, "False", "OverlappingBuiltInResource", "instances overlap with built-in resources in storage"
)

ServingOf = Callable[[Crd], Awaitable[Serving]]


class FinalizingController(CrdController):
    """The controller that deletes the custom resources of a definition being deleted, and then removes its finalizer.

    It also sets the condition Terminating. The finalizer is customresourcecleanup.apiextensions.k8s.io.

    Args:
        serving_of: returns the `Serving` of a definition: its request handlers and its store. The controller deletes
            the custom resources through the store.
        crds: all definitions.
        client: sends the status updates.
    """

    name = "CRDFinalizer"
    workers = 5

    def __init__(self, crds: Crds, client: Client, serving_of: ServingOf) -> None:
        super().__init__(crds, client)
        self._serving_of = serving_of
        self._checks: dict[str, int] = {}  # the number of checks for remaining objects, by the name of the definition

    def concerns(self, old: Crd | None, new: Crd | None) -> bool:
        if new is None or not new.deleting:
            return False
        # A change of only the condition Terminating is our own.
        return old is None or not old.deleting or _without_terminating(old) != _without_terminating(new)

    async def sync(self, name: str) -> None:
        crd = self.crds.get(name)
        if crd is None or not crd.deleting:
            self._checks.pop(name, None)
            return
        obj: Object | None = crd.object()
        assert obj is not None
        if CLEANUP_FINALIZER not in (obj["metadata"].get("finalizers") or ()):
            self._checks.pop(name, None)
            return
        if not equivalent(find_condition(obj, TERMINATING), _IN_PROGRESS):
            put(obj, _IN_PROGRESS)
            obj = await self.write_status(obj)
            if obj is None:
                # another replica is working on it; retry in case that replica stops
                self.queue.add_after(name, _CHECK_AGAIN)
                return
        if GroupResource(crd.group, crd.plural) in OVERLAPPING:
            put(obj, _OVERLAP)
        elif not is_true(obj, ESTABLISHED):
            put(obj, _NEVER)
        elif not await self._delete_instances(crd, obj):
            return
        obj["metadata"]["finalizers"] = [f for f in obj["metadata"]["finalizers"] if f != CLEANUP_FINALIZER]
        if await self.write_status(obj) is None:
            self.queue.add_after(name, _CHECK_AGAIN)

    async def _delete_instances(self, crd: Crd, obj: Object) -> bool:
        """Delete the custom resources of a definition, and return whether none is left.

        If some are left, the definition is queued again. Otherwise `obj` gets the condition Terminating with status
        "False".

        Args:
            obj: the whole definition `crd`, changed in place.

        Raises:
            StatusError: a deletion failed. The stored condition Terminating then contains the message.
        """
        try:
            remaining = await self._any_left(crd)
        except StatusError as error:
            text = f"could not issue all deletes: {error.message}"
            put(obj, condition(TERMINATING, "True", "InstanceDeletionFailed", text))
            await self.write_status(obj)
            raise
        if remaining:
            self.queue.add_after(crd.name, _CHECK_AGAIN)
            return False
        self._checks.pop(crd.name, None)
        put(obj, _COMPLETED)
        return True

    async def _any_left(self, crd: Crd) -> bool:
        """Return whether the definition has custom resources left.

        The first call for a definition, and every `_DELETE_AGAIN`th call, first deletes all custom resources.
        """
        store = (await self._serving_of(crd)).store
        checks = self._checks.get(crd.name, 0)
        if checks % _DELETE_AGAIN == 0:
            everything = await store.list(Context(), ListQuery())
            # one namespace after the other, as upstream does
            for namespace in sorted({entry.namespace for entry in everything.entries}):
                await store.delete_collection(
                    Context(namespace=namespace, version=crd.storage_version), {}, ListQuery()
                )
        self._checks[crd.name] = checks + 1
        return bool((await store.list(Context(), ListQuery(limit=1))).entries)


def _without_terminating(crd: Crd) -> Object:
    obj = crd.object()
    remove(obj, TERMINATING)
    for key in ("resourceVersion", "managedFields"):
        obj["metadata"].pop(key, None)
    return obj
