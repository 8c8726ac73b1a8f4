"""What admission plugins are given and what they may do (upstream: k8s.io/apiserver/pkg/admission)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from tetrapod.generic.authentication.user import UserInfo
from tetrapod.machinery.gvk import GroupVersionKind, GroupVersionResource, Object


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


class Plugin:
    """A plugin overrides `admit` (mutating), `validate` (validating) or both; either refuses by raising StatusError."""

    name: str = ""

    def handles(self, attributes: Attributes) -> bool:
        return True


class MutatingPlugin(Protocol):
    name: str

    def handles(self, attributes: Attributes) -> bool: ...
    async def admit(self, attributes: Attributes) -> None: ...


class ValidatingPlugin(Protocol):
    name: str

    def handles(self, attributes: Attributes) -> bool: ...
    async def validate(self, attributes: Attributes) -> None: ...


class AdmissionChain(Protocol):
    async def admit(self, attributes: Attributes) -> None: ...
    async def validate(self, attributes: Attributes) -> None: ...
    def handles(self, operation: str) -> bool: ...
