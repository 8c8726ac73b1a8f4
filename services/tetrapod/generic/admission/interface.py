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
    """A group-version and kind in which the objects of a request's resource are served."""

    resource: GroupVersionResource
    kind: GroupVersionKind


class Versions(Protocol):
    """Converts the objects of a request to the version that a plugin needs, and modified ones back.

    Upstream: admission.ObjectInterfaces
    """

    def equivalents(self) -> Sequence[Equivalent]:
        """Return all group-versions and kinds in which the objects of the request's resource are served.

        They are in order of preference and include the request's own. For a request to a subresource, the kinds are
        those of the subresource.
        """
        ...

    async def convert(self, obj: Object, kind: GroupVersionKind) -> Object:
        """Return `obj`, which is `Attributes.object` or `old_object`, as `kind`.

        The result may be the same object and must not be modified. Raises ValueError for an unknown kind.
        """
        ...

    async def accept(self, obj: Object, kind: GroupVersionKind, *, strict: bool = False) -> Object:
        """Convert a modified object of `kind` back to the form of `Attributes.object`, decoded and defaulted.

        The argument may be modified.

        Args:
            strict: reject unknown fields instead of removing them.

        Raises:
            ValueError: a value has a wrong type, or (`strict`) a field is unknown; the text is that of upstream's
                decoder.
        """
        ...

    def schema(self, kind: GroupVersionKind) -> SchemaNode | None:
        """Return the schema of `kind`, one of `equivalents`, or None if it has none."""
        ...


@dataclass(slots=True)
class Attributes:
    """One operation, as plugins see it. Mutating plugins may modify or replace `object`; nothing else may be modified.

    - `kind` and `resource` are those of the request. The objects are in the storage version, except those of a handler
      without storage (reviews, evictions).
    - `name` may be "" on create. `namespace` is "" for cluster-scoped objects, but for a Namespace it is its own name.
    - `object` is None for DELETE, `old_object` for CREATE and CONNECT. For CONNECT, `object` is the options object of
      the connection (PodExecOptions).
    - `options` is the options object of the request (CreateOptions, …), {} for CONNECT.
    - Plugins append to `warnings` (texts of Warning headers), and call `annotate`.
    - `request` is None without an HTTP request, such as in checks by a controller.
    """

    operation: str  # CREATE, UPDATE, DELETE, CONNECT
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
    """Set by a mutating plugin that has changed the object. All mutating plugins are then called once more."""
    is_reinvocation: bool = False
    """Whether the mutating plugins are being called for the second time."""
    versions: Versions | None = None
    state: dict[str, Any] = field(default_factory=dict)
    """Data that a plugin keeps from its first call for the second one, by its name."""

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
    """

    name: str = ""
    operations: frozenset[str] = ALL_OPERATIONS
    """The operations that the plugin handles; `handles` can restrict them further."""

    def handles(self, attributes: Attributes) -> bool:
        """Return whether the plugin is called for this request. It is asked only for its `operations`."""
        return True


class MutatingPlugin(Protocol):
    """A plugin that may change `attributes.object`, or reject by raising StatusError. See `Plugin`."""

    name: str
    operations: frozenset[str]

    def handles(self, attributes: Attributes) -> bool: ...
    async def admit(self, attributes: Attributes) -> None: ...


class ValidatingPlugin(Protocol):
    """A plugin that checks the object that would be stored and changes nothing."""

    name: str
    operations: frozenset[str]

    def handles(self, attributes: Attributes) -> bool: ...
    async def validate(self, attributes: Attributes) -> None: ...


class AdmissionChain(Protocol):
    """All plugins of a server.

    `admit` runs the mutating plugins, which may replace `attributes.object`; `validate` runs the validating ones. A
    rejection is raised as StatusError. `handles` returns whether any plugin handles an operation ("CREATE", …).
    """

    async def admit(self, attributes: Attributes) -> None: ...
    async def validate(self, attributes: Attributes) -> None: ...
    def handles(self, operation: str) -> bool: ...
