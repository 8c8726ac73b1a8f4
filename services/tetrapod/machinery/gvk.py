"""Groups, versions, kinds and resources, and their text forms.

Upstream: k8s.io/apimachinery/pkg/runtime/schema/group_version.go.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

Object: TypeAlias = dict[str, Any]
"""An API object as decoded JSON. A function that receives one may modify it unless its docstring says otherwise."""


class GroupKind(NamedTuple):
    """A kind of a group in any version."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class GroupResource(NamedTuple):
    """A resource of a group in any version."""

    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


class GroupVersion(NamedTuple):
    """An API group and version."""

    group: str
    version: str

    def __str__(self) -> str:
        """Return the `apiVersion`: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def with_kind(self, kind: str) -> GroupVersionKind:
        """Return the GroupVersionKind of a kind in this group-version."""
        return GroupVersionKind(self.group, self.version, kind)

    @classmethod
    def parse(cls, api_version: str) -> GroupVersion:
        """Parse an `apiVersion`: `apps/v1`, or `v1` for the core group, whose name is "".

        Raises:
            ValueError: the text has more than one slash.
        """
        group, slash, version = api_version.partition("/")
        if not slash:
            return cls("", group)
        if "/" in version:
            raise ValueError(f"unexpected GroupVersion string: {api_version}")
        return cls(group, version)


class GroupVersionKind(NamedTuple):
    """A kind of a group-version."""

    group: str
    version: str
    kind: str

    @property
    def group_version(self) -> GroupVersion:
        """Return the group and version."""
        return GroupVersion(self.group, self.version)

    @property
    def group_kind(self) -> GroupKind:
        """Return the group and kind."""
        return GroupKind(self.group, self.kind)

    @property
    def api_version(self) -> str:
        """Return the `apiVersion`: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Kind={self.kind}"


class GroupVersionResource(NamedTuple):
    """A resource of a group-version."""

    group: str
    version: str
    resource: str

    @property
    def group_version(self) -> GroupVersion:
        """Return the group and version."""
        return GroupVersion(self.group, self.version)

    @property
    def group_resource(self) -> GroupResource:
        """Return the group and resource."""
        return GroupResource(self.group, self.resource)

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Resource={self.resource}"
