"""What admission plugins are given and what they may do (upstream: k8s.io/apiserver/pkg/admission)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from tetrapod.generic.user import UserInfo
from tetrapod.machinery.gvk import GroupResource, GroupVersionKind, GroupVersionResource, Object
from tetrapod.machinery.shapes.node import SchemaNode
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.status import forbidden as _forbidden

DETAILED_ANNOTATIONS: Final = "audit annotations of level Request"
"""Where in `Request.state` they are."""


class Equivalent(NamedTuple):
    """Another group-version in which the objects of a request's resource are served."""

    resource: GroupVersionResource
    kind: GroupVersionKind


class Versions(Protocol):
    """How a plugin sees objects in the version that it wants (upstream: admission.ObjectInterfaces)."""

    def equivalents(self) -> Sequence[Equivalent]:
        """Of the request's resource and subresource, itself among them, in the order of preference."""
        ...

    async def convert(self, obj: Object, kind: GroupVersionKind) -> Object:
        """`Attributes.object` or `old_object` as `kind`; maybe the object itself, so nobody may change what is returned."""
        ...

    async def accept(self, obj: Object, kind: GroupVersionKind, *, strict: bool = False) -> Object:
        """The other way: a changed object of `kind` (taken over), decoded and defaulted, in the form of `Attributes.object`.

        Raises:
            ValueError: a value of a wrong type, or (`strict`) an unknown field; the text is upstream's decoder's.
        """
        ...

    def schema(self, kind: GroupVersionKind) -> SchemaNode | None:
        """Of an object of `kind`; None where nothing is known of it."""
        ...


@dataclass(slots=True)
class Attributes:
    """One operation. `object` may be changed in place by mutating plugins; `old_object` by nobody."""

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
    """Set by a mutating plugin that changed the object in a way that those before it should see: all are asked once more."""
    is_reinvocation: bool = False
    versions: Versions | None = None
    state: dict[str, Any] = field(default_factory=dict)
    """What a plugin remembers from its first turn for its second."""

    def annotate(self, key: str, value: str, *, level: str = "Metadata") -> None:
        """Say something in the audit event; what is of level "Request" is written only where requests are. The first value stays."""
        kept = self.annotations if level == "Metadata" or self.request is None else self.request.state.setdefault(DETAILED_ANNOTATIONS, {})
        kept.setdefault(key, value)


def forbidden(attributes: Attributes, why: str) -> StatusError:
    """A refusal that names the object as upstream's admission.NewForbidden: by generateName or "Unknown" if it must."""
    group, _, resource = attributes.resource
    name = attributes.name
    if not name:
        meta = (attributes.object or {}).get("metadata") or {}
        name = meta.get("name") or meta.get("generateName") or "Unknown"
    return _forbidden(GroupResource(group, resource), name, why)


ALL_OPERATIONS: Final = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})


class Plugin:
    """A plugin defines `admit` (mutating), `validate` (validating) or both; either refuses by raising StatusError."""

    name: str = ""
    operations: frozenset[str] = ALL_OPERATIONS
    """What it is asked about at all; `handles` looks closer."""

    def handles(self, attributes: Attributes) -> bool:
        return True


class MutatingPlugin(Protocol):
    """May change `attributes.object`, or refuse by raising StatusError. See `Plugin`."""

    name: str
    operations: frozenset[str]

    def handles(self, attributes: Attributes) -> bool: ...
    async def admit(self, attributes: Attributes) -> None: ...


class ValidatingPlugin(Protocol):
    """As `MutatingPlugin`, but changes nothing: it is asked once the object is what would be stored."""

    name: str
    operations: frozenset[str]

    def handles(self, attributes: Attributes) -> bool: ...
    async def validate(self, attributes: Attributes) -> None: ...


class AdmissionChain(Protocol):
    """All plugins of a server. `handles`: whether any is asked about an operation; a refusal is a StatusError."""

    async def admit(self, attributes: Attributes) -> None: ...
    async def validate(self, attributes: Attributes) -> None: ...
    def handles(self, operation: str) -> bool: ...
