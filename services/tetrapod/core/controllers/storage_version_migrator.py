"""The controller that rewrites every object of a resource, so that all are stored in the current storage version.

It runs one migration of a resource at a time. For a custom resource it sets the condition StorageMigrating of the
CustomResourceDefinition, and in the end removes the other storedVersions if the definition has not changed since.
Upstream: pkg/controller/storageversionmigrator, whose three controllers are the three steps of `_advance` here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from tetrapod.core.controllers.discovered import DiscoveredResource, Discovery
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.machinery.conditions import find_condition, is_true, set_condition
from tetrapod.machinery.copying import copy_object
from tetrapod.machinery.gvk import GroupResource, GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import now_rfc3339, parse

MIGRATIONS: Final = GroupVersionResource("storagemigration.k8s.io", "v1", "storageversionmigrations")
DEFINITIONS: Final = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_RUNNER: Final = "migration-runner-controller"
_VERBS: Final = ("update", "patch", "list")
_DISCOVERY_TIMEOUT: Final = 60.0  # seconds that a new custom resource has to appear in discovery
_RETRY: Final = 1.0  # seconds until discovery is read again
_PAGE: Final = 500
_TRIES: Final = 5
_TEMPORARY: Final = frozenset({"ServerTimeout", "TooManyRequests", "ServiceUnavailable", "InternalError", "Timeout"})


class StorageVersionMigrator:
    """The controller that runs StorageVersionMigrations, one at a time for each resource."""

    name = "storage-version-migrator-controller"

    def __init__(self, client: Client) -> None:
        self._client = client
        self._discovery = Discovery(client)
        self._migrations = Informer(client, MIGRATIONS)
        self._queue: WorkQueue[GroupResource] = WorkQueue(self.name, self._sync)
        self._migrations.handlers.append(self._on_migration)

    async def run(self) -> None:
        """Follow StorageVersionMigrations until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._migrations.run())
            await self._migrations.synced.wait()
            group.create_task(self._queue.run())

    def _on_migration(self, old: Object | None, new: Object | None) -> None:
        for migration in (old, new):
            if migration is not None:
                self._queue.add(_resource(migration))

    async def _sync(self, resource: GroupResource) -> None:
        """Clean up ended migrations of the resource, and advance the running one or start the oldest waiting one.

        A migration is running while its condition Running is True. The work queue calls this method again after an
        error, and then repeats what was not completed.

        Raises:
            StatusError: a request failed, for example with a 409 because the informer's copy of a migration is
                outdated. A migration that was deleted is ignored.
            Unavailable: the API server cannot be reached.
        """
        migrations = [copy_object(m) for m in self._migrations.objects.values() if _resource(m) == resource]
        running = [m for m in migrations if is_true(m, "Running")]
        for migration in running:
            if _ended(migration):
                await self._clean_up(resource, migration)
        if (active := next((m for m in running if not _ended(m)), None)) is not None:
            await self._advance(resource, active)
        elif waiting := [m for m in migrations if not is_true(m, "Running") and not _ended(m)]:
            await self._begin(
                resource, min(waiting, key=lambda m: (m["metadata"]["creationTimestamp"], m["metadata"]["name"]))
            )

    async def _begin(self, resource: GroupResource, migration: Object) -> None:
        """Set the condition StorageMigrating of the CustomResourceDefinition, if any, then Running of the migration.

        Both become "True". After an error of a request, which is raised, both steps are repeated later.

        Args:
            resource: the resource to migrate.
            migration: the StorageVersionMigration, which gets the condition in place too.
        """

        def running(definition: Object) -> Object:
            message = f"Migration {migration['metadata']['name']} is running"
            return {"conditions": [_migrating_condition(definition, "True", "MigrationRunning", message)]}

        await self._update_definition(resource, running)
        set_condition(migration, _running())
        await self._update_status(migration)

    async def _advance(self, resource: GroupResource, migration: Object) -> None:
        """Do the next step of the running migration.

        The steps are:

        1. Find the resource in discovery. The migration fails if the resource lacks verbs that it needs, or is missing
           60 seconds after the migration was created.
        2. Record in the migration's status the resource version up to which objects are migrated.
        3. Migrate.

        Args:
            resource: the resource to migrate.
            migration: the StorageVersionMigration, whose status is modified in step 2.

        Raises:
            StatusError: a request failed. The step is repeated when this method is called again.
            Unavailable: the server cannot be reached, with the same consequence.
        """
        discovered = await self._find(resource)
        if discovered is None:
            if time.time() - parse(migration["metadata"]["creationTimestamp"]).timestamp() < _DISCOVERY_TIMEOUT:
                self._queue.add_after(resource, _RETRY)
            else:
                await self._fail(migration, "resource does not exist in discovery")
            return
        gvr = discovered.gvr
        if not discovered.verbs.issuperset(_VERBS):
            text = (
                f'resource "{gvr.group}/{gvr.version}, Resource={gvr.resource}" does not support discovery operations: '
            )
            await self._fail(migration, f"{text}[{' '.join(_VERBS)}]")
            return
        if not (migration.get("status") or {}).get("resourceVersion"):
            page = await self._client.list(gvr, metadata_only=True, limit=1)
            migration.setdefault("status", {})["resourceVersion"] = page["metadata"]["resourceVersion"]
            await self._update_status(migration)
            return
        await self._migrate(discovered, migration)

    async def _migrate(self, resource: DiscoveredResource, migration: Object) -> None:
        """Write an empty patch to each object up to the recorded resource version, then set the condition Succeeded.

        Objects that other clients change or delete during the migration need no patch. A permanent error of a patch
        sets the condition Failed, and the method returns.

        Raises:
            StatusError: a temporary error of a patch, or any error of a list or of the status update (except 404). The
                work queue then tries again, beginning with the list.
        """
        last_revision = int(migration["status"]["resourceVersion"])
        total, candidates = 0, []
        async for metadata in self._metadata(resource.gvr):
            total += 1
            # newer objects were written in the current storage version
            if int(metadata["resourceVersion"]) <= last_revision:
                candidates.append((metadata.get("namespace") or "", metadata["name"], metadata["resourceVersion"]))
        remaining = len(candidates)
        kind = {"apiVersion": str(resource.gvr.group_version), "kind": resource.kind.kind}
        for namespace, name, revision in candidates:
            patch = {**kind, "metadata": {"resourceVersion": revision}}
            try:
                await self._client.patch(resource.gvr, namespace, name, patch, fieldManager=self.name)
            except StatusError as error:
                if error.reason in _TEMPORARY:
                    set_condition(migration, _running(remaining, total, error))
                    await self._update_status(migration)
                    raise
                if error.reason not in ("Conflict", "NotFound"):  # rewritten by another client, or deleted
                    text = f"{remaining}/{total} not yet migrated. migration encountered unhandled error: {error}"
                    set_condition(migration, _running(remaining, total))
                    await self._fail(migration, text)
                    return
            remaining -= 1
        set_condition(migration, _running(remaining, total))
        set_condition(migration, _condition("Succeeded", "StorageVersionMigrationSucceeded", "Migration completed"))
        await self._update_status(migration)

    async def _clean_up(self, resource: GroupResource, migration: Object) -> None:
        """Report the end of a migration that has succeeded or failed.

        First the condition StorageMigrating of the CustomResourceDefinition, if there is one, becomes "False". After a
        success, its storedVersions become the storage version alone, if the definition has not changed since the
        migration began. Then the migration's condition Running becomes "False". An error of a request is raised, and
        both steps are repeated later.

        Args:
            resource: the migrated resource.
            migration: the StorageVersionMigration, which gets the condition in place too.
        """
        success = is_true(migration, "Succeeded")

        def over(definition: Object) -> Object:
            existing = find_condition(definition, "StorageMigrating")
            unchanged = existing is not None and existing.get("observedGeneration") == definition["metadata"].get(
                "generation"
            )
            if not success:
                reason, message = "MigrationFailed", "The migration has failed"
            elif unchanged:
                reason, message = (
                    "MigrationSucceeded",
                    "The migration has succeeded and the stored versions have been updated",
                )
            else:
                text = (
                    "The migration has succeeded but the stored versions have not been updated due to a generation "
                    "mismatch"
                )
                reason, message = "MigrationSucceeded", text
            status: Object = {"conditions": [_migrating_condition(definition, "False", reason, message)]}
            if unchanged:
                status["storedVersions"] = [v["name"] for v in definition["spec"]["versions"] if v.get("storage")]
            return status

        await self._update_definition(resource, over)
        done = {**_condition("Running", "MigrationCompleted", "Migration completed"), "status": "False"}
        if generation := migration["metadata"].get("generation"):
            done["observedGeneration"] = generation
        set_condition(migration, done)
        await self._update_status(migration)

    async def _update_definition(self, resource: GroupResource, status_of: Callable[[Object], Object]) -> None:
        """Apply a status to the resource's CustomResourceDefinition, with up to 5 attempts on conflicts.

        A resource without a definition is ignored. The patch has the resource version that was read, because the
        condition's observedGeneration refers to it.

        Args:
            resource: the resource.
            status_of: returns the status to apply for the definition that was read.

        Raises:
            StatusError: a request was rejected, or the last attempt had a conflict.
            Unavailable: the server cannot be reached.
        """
        name = f"{resource.resource}.{resource.group}"
        for retries_left in reversed(range(_TRIES)):
            try:
                definition = await self._client.get(DEFINITIONS, "", name)
            except StatusError as error:
                if error.code == 404:  # a built-in resource
                    return
                raise
            metadata = {"name": name, "resourceVersion": definition["metadata"]["resourceVersion"]}
            config = {
                "apiVersion": str(DEFINITIONS.group_version),
                "kind": "CustomResourceDefinition",
                "metadata": metadata,
            }
            query = {"fieldManager": _RUNNER, "force": "true"}
            try:
                apply_configuration = {**config, "status": status_of(definition)}
                await self._client.patch(
                    DEFINITIONS, "", name, apply_configuration, type="apply", subresource="status", **query
                )
                return
            except StatusError as error:
                if error.reason != "Conflict" or not retries_left:
                    raise

    async def _find(self, resource: GroupResource) -> DiscoveredResource | None:
        """Return the resource in the most preferred version of its group that serves it; None if none does.

        Raises:
            Unavailable: discovery did not respond.
        """
        for discovered in (await self._discovery.resources()).resources:
            if (discovered.gvr.group, discovered.gvr.resource) == (resource.group, resource.resource):
                return discovered
        return None

    async def _metadata(self, gvr: GroupVersionResource) -> AsyncIterator[Object]:
        """Yield the metadata of all objects of the resource, in pages of 500."""
        query: dict[str, Any] = {"limit": _PAGE}
        while True:
            page = await self._client.list(gvr, metadata_only=True, **query)
            for item in page.get("items") or ():
                yield item["metadata"]
            if not (token := page["metadata"].get("continue")):
                return
            query["continue"] = token

    async def _fail(self, migration: Object, message: str) -> None:
        set_condition(migration, _condition("Failed", "StorageVersionMigrationFailed", message))
        await self._update_status(migration)

    async def _update_status(self, migration: Object) -> None:
        try:
            await self._client.update(MIGRATIONS, "", migration, subresource="status")
        except StatusError as error:
            if error.code != 404:  # the migration was deleted
                raise


def _resource(migration: Object) -> GroupResource:
    resource = migration["spec"]["resource"]
    return GroupResource(resource.get("group") or "", resource["resource"])


def _ended(migration: Object) -> bool:
    """Return whether the migration has succeeded or failed."""
    return is_true(migration, "Succeeded") or is_true(migration, "Failed")


def _condition(kind: str, reason: str, message: str) -> Object:
    return {"type": kind, "status": "True", "reason": reason, "message": message}


def _running(left: int = 0, total: int = 0, error: StatusError | None = None) -> Object:
    """Return the condition Running with status "True" and the progress in its message.

    Args:
        left: the number of objects that are not yet migrated.
        total: the number of objects; 0 for no progress.
        error: a temporary error to mention.
    """
    message = "The migration is running"
    if total:
        message += f", {left}/{total} objects not yet migrated" if left else f", {total} objects verified migrated"
    if error is not None:
        message += f"; transient error: {error}"
    return _condition("Running", "MigrationRunning", message)


def _migrating_condition(definition: Object, status: str, reason: str, message: str) -> Object:
    """Return the condition StorageMigrating of a CustomResourceDefinition, for its current generation."""
    return {
        "type": "StorageMigrating",
        "status": status,
        "lastTransitionTime": now_rfc3339(),
        "reason": reason,
        "message": message,
        "observedGeneration": definition["metadata"]["generation"],
    }
