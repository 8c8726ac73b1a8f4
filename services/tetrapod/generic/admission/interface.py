"""The interface of admission plugins.

Upstream: staging/src/k8s.io/apiserver/pkg/admission
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from tetrapod.machinery.gvk import GroupResource, GroupVersionKind, GroupVersionResource, Object
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.status import forbidden as _forbidden
from tetrapod.machinery.user import UserInfo

DETAILED_ANNOTATIONS: Final = "audit annotations of level Request"
"""The key of these annotations in `Request.state`."""


class Equivalent(NamedTuple):
    """A resource and kind that serve the same objects as the resource of a request, such as in another API version."""

    resource: GroupVersionResource
    kind: GroupVersionKind


class Versions(Protocol):
    """Converts the objects of a request to the version that a plugin needs, and objects that it modified back.

    Upstream: admission.ObjectInterfaces
    """

    def equivalents(self) -> Sequence[Equivalent]:
        """Return all group-versions and kinds in which the objects of the request's resource are served.

        They are in order of preference and include the request's own. For a request to a subresource, the kinds are
        those of the subresource.
        """
        ...

    async def convert(self, obj: Object, kind: GroupVersionKind, *, large: bool = False) -> Object:
        """Return `obj`, which is `Attributes.object` or `old_object`, as `kind`.

        The result may be the same object and must not be modified. Raises ValueError for an unknown kind.

        Args:
            large: whether to copy the object in a thread, because copying it would block the event loop.
        """
        ...

    async def accept(
        self, obj: Object, kind: GroupVersionKind, original: Object, *, strict: bool = False, large: bool = False
    ) -> Object:
        """Convert an object that a plugin received as `kind` and modified back to the version of `Attributes.object`.

        The result is decoded and has defaults. It has the fields of `original` that `kind` lacks. `obj` may be
        modified.

        Args:
            obj: the modified object.
            kind: the kind and version of `obj`.
            original: `Attributes.object` before the modification.
            strict: reject unknown fields of built-in kinds instead of removing them.
            large: whether to decode the object in a thread, because decoding it would block the event loop.

        Raises:
            ValueError: a value has a wrong type, or (`strict`) a field is unknown; the text is that of upstream's
                decoder.
            StatusError: a custom object is of another kind (422) or group (500).
        """
        ...

    def schema(self, kind: GroupVersionKind) -> SchemaNode | None:
        """Return the schema of `kind`, one of `equivalents`, or None if it has none."""
        ...


@dataclass(slots=True)
class Attributes:
    """One operation, as plugins see it. Mutating plugins may modify or replace `object`; nothing else may be modified.

    The objects are in the storage version, except those of a handler without storage (reviews, evictions).

    Attributes:
        operation: "CREATE", "UPDATE", "DELETE" or "CONNECT".
        kind: the kind in the request's version.
        resource: the resource in the request's version.
        subresource: the subresource; "" for the resource itself.
        namespace: "" for cluster-scoped objects, but for a Namespace its own name.
        name: the name of the object; it may be "" on create.
        object: the new object; None for DELETE. For CONNECT, the options object of the connection (PodExecOptions).
        old_object: the stored object; None for CREATE and CONNECT.
        options: the options object of the request (CreateOptions, …), {} for CONNECT.
        dry_run: whether nothing is to be stored.
        user: the user who makes the request.
        warnings: the texts of Warning headers, to which plugins append.
        annotations: the annotations of the audit event, to which plugins add by `annotate`.
        request: the HTTP request; None without one, such as in checks by a controller.
        reinvoke: set by a mutating plugin that has changed the object. All mutating plugins are then called once more.
        is_reinvocation: whether the mutating plugins are being called for the second time.
        versions: converts the objects to other versions. If it is None, plugins see the objects as they are, and
            match no other version.
        state: data that a plugin keeps from its first call for the second one, by the plugin's name.
        large: whether the new or the old object has many bytes or members (`is_large`). Work on it is then done in a
            thread, so that it does not block the event loop.
    """

    operation: str
    kind: GroupVersionKind
    resource: GroupVersionResource
    subresource: str
    namespace: str
    name: str
    object: Object | None
    old_object: Object | None
    options: Object
    dry_run: bool
    user: UserInfo
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    request: Any = None
    reinvoke: bool = False
    is_reinvocation: bool = False
    versions: Versions | None = None
    state: dict[str, Any] = field(default_factory=dict)
    large: bool = False

    def annotate(self, key: str, value: str, *, level: str = "Metadata") -> None:
        """Add an audit annotation, unless the key has a value already.

        Args:
            level: "Request" for an annotation that is written only if the audit policy records request bodies.
        """
        annotations = (
            self.annotations
            if level == "Metadata" or self.request is None
            else self.request.state.setdefault(DETAILED_ANNOTATIONS, {})
        )
        annotations.setdefault(key, value)


def forbidden(attributes: Attributes, reason: str) -> StatusError:
    """Return, not raise, the 403 of upstream's admission.NewForbidden, which names the object.

    The object is named by its name, else by its generateName, else "Unknown".
    """
    group, _, resource = attributes.resource
    name = attributes.name
    if not name:
        meta = (attributes.object or {}).get("metadata") or {}
        name = meta.get("name") or meta.get("generateName") or "Unknown"
    return _forbidden(GroupResource(group, resource), name, reason)


ALL_OPERATIONS: Final = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})


class Plugin:
    """An admission plugin, which defines `admit` (mutating), `validate` (validating) or both.

    It rejects a request by raising StatusError.

    Attributes:
        name: the name, as in --enable-admission-plugins.
        operations: the operations that the plugin handles ("CREATE", …); `handles` can restrict them further.
    """

    name: str = ""
    operations: frozenset[str] = ALL_OPERATIONS

    def handles(self, attributes: Attributes) -> bool:
        """Return whether the plugin is called for this request. Only requests with one of `operations` are passed."""
        return True


class MutatingPlugin(Protocol):
    """A plugin that may change `attributes.object`, or reject the request by raising StatusError.

    `admit` is called only for requests for which `handles` returns True.
    """

    name: str
    operations: frozenset[str]

    def handles(self, attributes: Attributes) -> bool: ...
    async def admit(self, attributes: Attributes) -> None: ...


class ValidatingPlugin(Protocol):
    """A plugin that checks the object that would be stored, and changes nothing.

    It rejects the request by raising StatusError. `validate` is called only for requests for which `handles` returns
    True.
    """

    name: str
    operations: frozenset[str]

    def handles(self, attributes: Attributes) -> bool: ...
    async def validate(self, attributes: Attributes) -> None: ...


class AdmissionChain(Protocol):
    """The admission plugins of a server, as the endpoints and the registry call them.

    `admit` runs the mutating plugins, which may replace `attributes.object`; `validate` runs the validating ones. A
    rejection is raised as StatusError. `handles` returns whether any plugin handles an operation ("CREATE", …).
    """

    async def admit(self, attributes: Attributes) -> None: ...
    async def validate(self, attributes: Attributes) -> None: ...
    def handles(self, operation: str) -> bool: ...
