"""`Ownership`: the field manager of one endpoint, created at the first write, and the names of managers.

Objects are in the version of the request.
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/installer.go, which creates a FieldManager for each storage with
a schema; handlers/create.go, managerOrUserAgent
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Final, TypeVar

from tetrapod.generic.endpoints.conversion import Conversion
from tetrapod.generic.http.request import Request
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.machinery.copying import copy_object
from tetrapod.machinery.fieldmanager import fieldset
from tetrapod.machinery.fieldmanager.fieldset import FieldFilter
from tetrapod.machinery.fieldmanager.manager import FieldManager, Finish
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.schema import empty_values
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.status import StatusError

_MAX_MANAGER: Final = 128


T = TypeVar("T")
_LOOP: Final[contextvars.ContextVar[asyncio.AbstractEventLoop | None]] = contextvars.ContextVar("loop", default=None)
_WAITING: Final = 16
"""Maximum number of writes that wait for a conversion webhook at the same time; further ones are queued."""


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_WAITING, thread_name_prefix="ownership")


def _wait_for(conversion: Awaitable[list[Object]]) -> list[Object]:
    """Run a conversion on the event loop and wait for its result. Called in a thread."""
    loop = _LOOP.get()
    assert loop is not None  # set by `run`, the only way to get here

    async def wait() -> list[Object]:
        return await conversion

    return asyncio.run_coroutine_threadsafe(wait(), loop).result()


def manager_name(request: Request, field_manager: str) -> str:
    """Return `?fieldManager=`, or the part of the User-Agent before the slash."""
    if field_manager:
        return field_manager
    prefix = request.header(b"user-agent").split("/", 1)[0]
    printable, size = [], 0
    for char in prefix:
        size += len(char.encode("utf-8", "replace"))
        if size > _MAX_MANAGER:
            break
        if char.isprintable():
            printable.append(char)
        else:
            size -= len(char.encode("utf-8", "replace"))
    return "".join(printable)


class Ownership:
    """The managed fields of one endpoint. `kind` is the kind of its requests."""

    def __init__(
        self,
        kind: GroupVersionKind,
        node_for: Callable[[str], SchemaNode],
        convert: Callable[[Object, str], Object] | None,
        reset_fields: Callable[[], Mapping[str, FieldFilter]],
        subresource: str,
        *,
        thorough: bool = False,
        waits: bool = False,
    ) -> None:
        self._waits = waits  # conversions call a webhook
        self._node: Callable[[], SchemaNode] = lambda: node_for(kind.api_version)

        def make() -> FieldManager:
            return FieldManager(
                kind, node_for, convert, reset_fields=reset_fields(), subresource=subresource, thorough=thorough
            )

        self._make: Callable[[], FieldManager] = make
        self._manager: FieldManager | None = None

    @property
    def _fields(self) -> FieldManager:
        if self._manager is None:
            self._manager = self._make()
        return self._manager

    async def run(self, large: bool, work: Callable[[], T]) -> T:
        """Call a function that uses `update` or `apply`, if necessary in a thread.

        The function runs in a thread if objects are large, or if a webhook converts them.
        """
        if not self._waits:
            return await offloaded(large, work)
        loop = asyncio.get_running_loop()
        token = _LOOP.set(loop)
        try:
            return await loop.run_in_executor(_threads(), contextvars.copy_context().run, work)
        finally:
            _LOOP.reset(token)

    def update(self, live: Object | None, new: Object, manager: str) -> Object:
        """Return the new object with updated managed fields.

        Empty lists that the stored form omits get no manager, although validation needs to see them.
        """
        hidden = empty_values.hide(self._node(), new)
        owned = self._fields.update(live, new, manager)
        empty_values.put_back(owned, hidden)
        return owned

    def apply(self, live: Object | None, config: Object, manager: str, *, force: bool, finish: Finish) -> Object:
        """Merge an apply configuration and update the managed fields.

        Raises:
            StatusError: 400 and 409.
        """
        return self._fields.apply(live, config, manager, force=force, finish=finish)


def of_resource(definition: ResourceDefinition, version: str, strategy: Strategy, subresource: str) -> Ownership:
    """Return the field manager of the resource, or of a subresource that is an update of it."""
    versions = {definition.gvk(served).api_version: served for served in definition.versions}

    def node_for(api_version: str) -> SchemaNode:
        return definition.schema(versions[api_version])

    def reset_fields() -> dict[str, FieldFilter]:
        filters = {}
        for api_version, served in versions.items():
            paths = list(strategy.reset_fields(served))
            if strategy.has_status and not subresource:
                paths.append(("status",))
            if paths:
                filters[api_version] = fieldset.exclude(fieldset.of_fields(paths))
        return filters

    convert = _converter(definition, version, versions) if len(versions) > 1 else None
    waits = convert is not None and definition.convert_many is not None
    return Ownership(
        definition.gvk(version), node_for, convert, reset_fields, subresource, thorough=definition.custom, waits=waits
    )


def _converter(
    definition: ResourceDefinition, version: str, versions: Mapping[str, str]
) -> Callable[[Object, str], Object]:
    """Return a function that converts between served versions."""
    stored = Conversion(definition, version).stored

    def convert(obj: Object, api_version: str) -> Object:
        copy = copy_object(obj)
        if definition.convert_many is not None:
            return _wait_for(definition.convert_many([copy], versions[api_version]))[0]
        if definition.convert is None or definition.custom:
            # Upstream's field manager only renames the version of custom resources: a field that the other version
            # lacks is an error, not pruned.
            versions[api_version]
            copy["apiVersion"] = api_version
            return copy
        if copy["apiVersion"] != stored:
            copy = definition.convert(copy, definition.storage_version)
        return copy if api_version == stored else definition.convert(copy, versions[api_version])

    return convert


class _ScaleOfCustom(Ownership):
    """The field manager of custom resources' Scale.

    Upstream's converter does not support it, so an apply that changes one always fails.
    """

    def apply(self, live: Object | None, config: Object, manager: str, *, force: bool, finish: Finish) -> Object:
        """Raise the error of upstream's converter, unless the apply changes nothing.

        Raises:
            StatusError: 500 because the Scale cannot be converted, or an earlier 400 or 409 of the apply.
        """
        if not ((live or {}).get("metadata") or {}).get("managedFields"):
            raise _unconvertible("failed to create manager for existing fields: failed to convert live object (/; {})")
        applied = super().apply(live, config, manager, force=force, finish=finish)
        if live is not None and _but_owners(applied) == _but_owners(live):
            return applied
        meta = config.get("metadata") or {}
        raise _unconvertible(
            f"failed to convert new object ({meta.get('namespace') or ''}/{meta.get('name') or ''}; {{}})"
        )


def _but_owners(obj: Object) -> Object:
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}


def _unconvertible(subject_template: str) -> StatusError:
    subject = subject_template.format("autoscaling/v1, Kind=Scale")
    return StatusError(
        500, "", f"{subject} to proper version: request to convert CR to an invalid group/version: autoscaling/v1"
    )


def of_kind(
    kind: GroupVersionKind, schema: Callable[[], SchemaNode], subresource: str, *, of_custom: bool = False
) -> Ownership:
    """Return the field manager of a kind that differs from the resource's (`autoscaling/v1 Scale`, a review)."""

    def node_for(api_version: str) -> SchemaNode:
        if GroupVersion.parse(api_version) != kind.group_version:
            raise LookupError(api_version)
        return schema()

    return (_ScaleOfCustom if of_custom else Ownership)(kind, node_for, None, dict, subresource)
