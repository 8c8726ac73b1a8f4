"""`EndpointFieldManager`: the managed fields of one endpoint, and the names of field managers.

Objects are in the version of the request.
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/installer.go, which creates a FieldManager for each storage with a
schema; handlers/create.go, managerOrUserAgent
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
    return ThreadPoolExecutor(_WAITING, thread_name_prefix="field-manager")


def _wait_for(conversion: Awaitable[list[Object]]) -> list[Object]:
    """Run a conversion on the event loop and wait for its result.

    Must be called in a thread of `EndpointFieldManager.run`.
    """
    loop = _LOOP.get()
    assert loop is not None  # set by `run`, the only way to get here

    async def wait() -> list[Object]:
        return await conversion

    return asyncio.run_coroutine_threadsafe(wait(), loop).result()


def manager_name(request: Request, field_manager: str) -> str:
    """Return the name of the field manager: `field_manager` if it is set, else the User-Agent before the slash.

    The name from the User-Agent is cut to 128 bytes, without unprintable characters.
    """
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


class EndpointFieldManager:
    """The managed fields of one endpoint. Its field manager is created at the first write.

    Args:
        kind: the kind and version of its requests.
        node_for: returns the schema of the kind in an apiVersion.
        convert: returns a copy of an object in another apiVersion; None if there is only one.
        reset_fields: returns the fields that requests cannot change, by apiVersion; called at the first write.
        subresource: the subresource that managedFields entries name; "" for the resource itself.
        thorough: whether whole objects are validated before an update is tracked. True for custom resources, because
            stored objects may not match their schema.
        waits: whether `convert` calls a webhook, so that it must be called in a thread.
    """

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
        """Call `work()` and return its result, in a thread if it would block the event loop or waits for a webhook.

        Args:
            large: whether to call it in a thread because the objects are large (`Context.large`). If a webhook converts
                the objects, it is always called in a thread.
            work: a function without arguments that calls `update` or `apply`.
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
        """Return the new object with updated managedFields.

        Empty lists that are omitted from stored objects are not recorded in managedFields. They remain in the result,
        because validation needs them.

        Args:
            live: the stored object; None for a create.
            new: the new object, which may be modified.
            manager: the name of the field manager.
        """
        hidden = empty_values.hide(self._node(), new)
        owned = self._fields.update(live, new, manager)
        empty_values.put_back(owned, hidden)
        return owned

    def apply(self, live: Object | None, config: Object, manager: str, *, force: bool, finish: Finish) -> Object:
        """Merge an apply configuration into an object, and return the result with updated managedFields.

        Args:
            live: the stored object; None creates the object.
            config: the apply configuration.
            manager: the name of the field manager.
            force: take over fields of other managers instead of raising a conflict.
            finish: converts the merged object to its final form; called with it and whether the apply changed anything.

        Raises:
            StatusError: 400 for an invalid configuration, 409 for conflicts with other managers.
        """
        return self._fields.apply(live, config, manager, force=force, finish=finish)


def of_resource(
    definition: ResourceDefinition, version: str, strategy: Strategy, subresource: str
) -> EndpointFieldManager:
    """Return the field management of a resource, or of a subresource that is an update of it (`status`).

    Args:
        definition: the resource.
        version: the version of the endpoint's requests.
        strategy: that of the resource or subresource.
        subresource: the subresource; "" for the resource itself.
    """
    versions = {definition.gvk(served).api_version: served for served in definition.versions}

    def node_for(api_version: str) -> SchemaNode:
        return definition.schema(versions[api_version])

    def reset_fields() -> dict[str, FieldFilter]:
        filters = {}
        for api_version, served in versions.items():
            if definition.custom and not subresource and served != version:
                continue  # upstream's handler of custom resources knows the fields of the request's version only
            paths = list(strategy.reset_fields(served))
            if strategy.has_status and not subresource:
                paths.append(("status",))
            if paths:
                filters[api_version] = fieldset.exclude(fieldset.of_fields(paths))
        return filters

    convert = _converter(definition, version, versions) if len(versions) > 1 else None
    waits = convert is not None and definition.convert_many is not None
    return EndpointFieldManager(
        definition.gvk(version), node_for, convert, reset_fields, subresource, thorough=definition.custom, waits=waits
    )


def _converter(
    definition: ResourceDefinition, version: str, versions: Mapping[str, str]
) -> Callable[[Object, str], Object]:
    """Return a function that copies an object and converts the copy to another served apiVersion, its second argument.

    The function raises KeyError for an apiVersion that is not served, and StatusError if a conversion webhook fails.

    Args:
        version: the version of the endpoint's requests.
        versions: the name of each served version (`v1`) by its apiVersion (`apps/v1`).
    """
    stored = Conversion(definition, version).stored

    def convert(obj: Object, api_version: str) -> Object:
        copy = copy_object(obj)
        if definition.convert_many is not None:
            return _wait_for(definition.convert_many([copy], versions[api_version]))[0]
        if definition.convert is None:
            # Upstream's field manager only renames the version of custom resources: a field that the other version
            # lacks is an error, not pruned.
            versions[api_version]
            copy["apiVersion"] = api_version
            return copy
        if copy["apiVersion"] != stored:
            copy = definition.convert(copy, definition.storage_version)
        return copy if api_version == stored else definition.convert(copy, versions[api_version])

    return convert


class _CustomScaleFieldManager(EndpointFieldManager):
    """The field management of the Scale of custom resources.

    Upstream's version converter cannot convert a Scale of a custom resource. Therefore an apply that changes more than
    managedFields always fails with a 500.
    """

    def apply(self, live: Object | None, config: Object, manager: str, *, force: bool, finish: Finish) -> Object:
        """Return the merged Scale with updated managedFields, if nothing else changes; otherwise raise an error.

        Args:
            live: the stored Scale, or None.
            config: the apply configuration.
            manager: the name of the field manager.
            force: take over fields of other managers instead of raising a conflict.
            finish: converts the merged Scale to its final form; called with it and whether the apply changed anything.

        Raises:
            StatusError: 400 for a configuration of another kind. 500 with the text of upstream's converter, before
                anything is merged if `live` is None or has no managedFields, or after the merge if another field
                changed. The merge may raise 400 or 409 first.
        """
        self._fields.check_kind(config)
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
) -> EndpointFieldManager:
    """Return the field management of a kind that differs from the resource's (`autoscaling/v1 Scale`, a review).

    Args:
        kind: the kind and version.
        schema: returns the schema of the kind; called at the first write.
        subresource: the subresource; "" for the resource itself.
        of_custom: whether the resource is a custom resource.
    """

    def node_for(api_version: str) -> SchemaNode:
        if GroupVersion.parse(api_version) != kind.group_version:
            raise LookupError(api_version)
        return schema()

    return (_CustomScaleFieldManager if of_custom else EndpointFieldManager)(kind, node_for, None, dict, subresource)
