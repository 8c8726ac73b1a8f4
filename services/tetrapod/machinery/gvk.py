"""Group, version, kind and resource names, and how they are written.

Follows k8s.io/apimachinery/pkg/runtime/schema/group_version.go.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

Object: TypeAlias = dict[str, Any]
"""An API object as decoded JSON. Whoever receives one may change it unless told otherwise."""


class GroupKind(NamedTuple):
    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class GroupResource(NamedTuple):
    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


class GroupVersion(NamedTuple):
    group: str
    version: str

    def __str__(self) -> str:
        """The `apiVersion` text: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def with_kind(self, kind: str) -> GroupVersionKind:
        return GroupVersionKind(self.group, self.version, kind)

    @classmethod
    def parse(cls, api_version: str) -> GroupVersion:
        """Parse an `apiVersion`.

        Raises:
            ValueError: more than one slash.
        """
        group, slash, version = api_version.partition("/")
        if not slash:
            return cls("", group)
        if "/" in version:
            raise ValueError(f"unexpected GroupVersion string: {api_version}")
        return cls(group, version)


class GroupVersionKind(NamedTuple):
    group: str
    version: str
    kind: str

    @property
    def group_version(self) -> GroupVersion:
        return GroupVersion(self.group, self.version)

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Kind={self.kind}"


class GroupVersionResource(NamedTuple):
    group: str
    version: str
    resource: str

    @property
    def group_version(self) -> GroupVersion:
        return GroupVersion(self.group, self.version)

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.resource)

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Resource={self.resource}"
