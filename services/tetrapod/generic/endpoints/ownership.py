"""`Ownership`: the field manager of one endpoint, made when the first write needs it, and who is said to manage.

Objects are in the version of the requests. Upstream: k8s.io/apiserver/pkg/endpoints/installer.go, which makes a FieldManager
for each storage with a schema, and managerOrUserAgent of handlers/create.go.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Final, TypeVar

from tetrapod.generic.endpoints.conversion import Conversion
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.request import Request
from tetrapod.machinery.copying import copy_object
from tetrapod.machinery.fieldmanager import fieldset
from tetrapod.machinery.fieldmanager.fieldset import FieldFilter
from tetrapod.machinery.fieldmanager.manager import FieldManager, Finish
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.schema import emptied
from tetrapod.machinery.shapes.node import SchemaNode
from tetrapod.machinery.status import StatusError

_MAX_MANAGER: Final = 128


T = TypeVar("T")
_LOOP: Final[contextvars.ContextVar[asyncio.AbstractEventLoop | None]] = contextvars.ContextVar("loop", default=None)
_WAITING: Final = 16
"""Writes whose ownership waits for a webhook at once; more of them queue up."""


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_WAITING, thread_name_prefix="ownership")


def _awaited(conversion: Awaitable[list[Object]]) -> list[Object]:
    """Of a thread: what the event loop comes to."""
    loop = _LOOP.get()
    assert loop is not None  # `run` is how one gets here

    async def wait() -> list[Object]:
        return await conversion

    return asyncio.run_coroutine_threadsafe(wait(), loop).result()


def manager_name(request: Request, field_manager: str) -> str:
    """`?fieldManager=`, or what comes before the slash in the User-Agent."""
    if field_manager:
        return field_manager
    prefix = request.header(b"user-agent").split("/", 1)[0]
    kept, size = [], 0
    for char in prefix:
        size += len(char.encode("utf-8", "replace"))
        if size > _MAX_MANAGER:
            break
        if char.isprintable():
            kept.append(char)
        else:
            size -= len(char.encode("utf-8", "replace"))
    return "".join(kept)


class Ownership:
    """`kind` is what the endpoint's requests carry."""

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
        self._waits = waits  # conversions are a webhook's
        self._node: Callable[[], SchemaNode] = lambda: node_for(kind.api_version)

        def make() -> FieldManager:
            return FieldManager(kind, node_for, convert, reset_fields=reset_fields(), subresource=subresource, thorough=thorough)

        self._make: Callable[[], FieldManager] = make
        self._manager: FieldManager | None = None

    @property
    def _fields(self) -> FieldManager:
        if self._manager is None:
            self._manager = self._make()
        return self._manager

    async def run(self, work: Callable[[], T]) -> T:
        """Do something with `update` and `apply`: in a thread where conversions have to be waited for."""
        if not self._waits:
            return work()
        loop = asyncio.get_running_loop()
        token = _LOOP.set(loop)
        try:
            return await loop.run_in_executor(_threads(), contextvars.copy_context().run, work)
        finally:
            _LOOP.reset(token)

    def update(self, live: Object | None, new: Object, manager: str) -> Object:
        """Nobody owns an empty list that is not written, though validation is to see it."""
        told = emptied.hide(self._node(), new)
        owned = self._fields.update(live, new, manager)
        emptied.put_back(owned, told)
        return owned

    def apply(self, live: Object | None, config: Object, manager: str, *, force: bool, finish: Finish) -> Object:
        """
        Raises:
            StatusError: 400 and 409.
        """
        return self._fields.apply(live, config, manager, force=force, finish=finish)


def of_resource(definition: ResourceDefinition, version: str, strategy: Strategy, subresource: str) -> Ownership:
    """For the resource itself, or a subresource that is an update of it."""
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
    return Ownership(definition.gvk(version), node_for, convert, reset_fields, subresource, thorough=definition.custom, waits=waits)


def _converter(definition: ResourceDefinition, version: str, versions: Mapping[str, str]) -> Callable[[Object, str], Object]:
    """Between served versions."""
    stored = Conversion(definition, version).stored

    def convert(obj: Object, api_version: str) -> Object:
        copy = copy_object(obj)
        if definition.convert_many is not None:
            return _awaited(definition.convert_many([copy], versions[api_version]))[0]
        if definition.convert is None or definition.custom:
            # Upstream's field manager renames custom resources: what the other version lacks is a misfit, not pruned.
            versions[api_version]
            copy["apiVersion"] = api_version
            return copy
        if copy["apiVersion"] != stored:
            copy = definition.convert(copy, definition.storage_version)
        return copy if api_version == stored else definition.convert(copy, versions[api_version])

    return convert


class _ScaleOfCustom(Ownership):
    """Upstream's converter of custom resources does not know their Scale, so that no apply that changes one succeeds."""

    def apply(self, live: Object | None, config: Object, manager: str, *, force: bool, finish: Finish) -> Object:
        """
        Raises:
            StatusError: 500 in the end, though 400 and 409 come first.
        """
        if not ((live or {}).get("metadata") or {}).get("managedFields"):
            raise _unconvertible("failed to create manager for existing fields: failed to convert live object (/; {})")
        applied = super().apply(live, config, manager, force=force, finish=finish)
        if live is not None and _but_owners(applied) == _but_owners(live):
            return applied
        meta = config.get("metadata") or {}
        raise _unconvertible(f"failed to convert new object ({meta.get('namespace') or ''}/{meta.get('name') or ''}; {{}})")


def _but_owners(obj: Object) -> Object:
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}


def _unconvertible(what: str) -> StatusError:
    subject = what.format("autoscaling/v1, Kind=Scale")
    return StatusError(500, "", f"{subject} to proper version: request to convert CR to an invalid group/version: autoscaling/v1")


def of_kind(kind: GroupVersionKind, schema: Callable[[], SchemaNode], subresource: str, *, of_custom: bool = False) -> Ownership:
    """For a kind that is not the resource's (`autoscaling/v1 Scale`, a review)."""

    def node_for(api_version: str) -> SchemaNode:
        if GroupVersion.parse(api_version) != kind.group_version:
            raise LookupError(api_version)
        return schema()

    return (_ScaleOfCustom if of_custom else Ownership)(kind, node_for, None, dict, subresource)
