"""Several discovery sources as one, for a server with both built-in and custom resources."""

from __future__ import annotations

from collections.abc import Sequence

from tetrapod.generic.discovery.handlers import DiscoverySource
from tetrapod.machinery.gvk import Object


class JoinedDiscovery:
    """The union of several discovery sources.

    If several sources have a group or a group-version, the classic documents are those of the first one. The aggregated
    documents are those of all, one after the other.
    """

    def __init__(self, sources: Sequence[DiscoverySource]) -> None:
        self._sources = sources

    @property
    def generation(self) -> int:
        return sum(source.generation for source in self._sources)

    def core_versions(self) -> list[str]:
        return list(dict.fromkeys(v for source in self._sources for v in source.core_versions()))

    def groups(self) -> list[Object]:
        by_name: dict[str, Object] = {}
        for source in self._sources:
            for group in source.groups():
                by_name.setdefault(group["name"], group)
        return list(by_name.values())

    def resources(self, group: str, version: str) -> Object | None:
        return next(
            (
                resource_list
                for source in self._sources
                if (resource_list := source.resources(group, version)) is not None
            ),
            None,
        )

    def aggregated(self, core: bool) -> list[Object]:
        return [item for source in self._sources for item in source.aggregated(core)]
