"""The `DiscoverySource` of built-in resources: those of core, auth or an aggregated API server."""

from __future__ import annotations

from tetrapod.generic.discovery import documents
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery.gvk import GroupVersion, Object


class DefinitionSource:
    """The discovery source of installed resources.

    Groups are in the order of installation, versions in the order of preference that their resources declare.
    """

    def __init__(self) -> None:
        self._generation = 0
        self._versions: dict[str, list[str]] = {}
        self._definitions: dict[GroupVersion, list[ResourceDefinition]] = {}

    @property
    def generation(self) -> int:
        return self._generation

    def install(self, definition: ResourceDefinition) -> None:
        """Add a resource in all its served versions. It must have at least one."""
        versions = self._versions.setdefault(definition.group, [])
        for version in definition.served_versions:
            if version not in versions:
                versions.append(version)
            self._definitions.setdefault(GroupVersion(definition.group, version), []).append(definition)
        self._generation += 1

    def definitions(self, group: str, version: str) -> list[ResourceDefinition]:
        """Return the resources of a group-version in the order of installation; [] for an unknown group-version.

        Do not modify the list.
        """
        return self._definitions.get(GroupVersion(group, version), [])

    def group_versions(self) -> list[GroupVersion]:
        """Return all group-versions, in the order of groups and versions, including those of the core group."""
        return [GroupVersion(group, version) for group, versions in self._versions.items() for version in versions]

    def core_versions(self) -> list[str]:
        return list(self._versions.get("", []))

    def groups(self) -> list[Object]:
        return [documents.api_group(group, versions) for group, versions in self._versions.items() if group]

    def resources(self, group: str, version: str) -> Object | None:
        definitions = self.definitions(group, version)
        return documents.api_resource_list(GroupVersion(group, version), definitions) if definitions else None

    def aggregated(self, core: bool) -> list[Object]:
        return [
            documents.aggregated_group(
                group, [documents.aggregated_version(v, self.definitions(group, v)) for v in versions]
            )
            for group, versions in self._versions.items()
            if (group == "") == core
        ]
