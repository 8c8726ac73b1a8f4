"""Several discovery sources as one: a server that has declared resources and others that come and go (custom resources)."""

from __future__ import annotations

from collections.abc import Sequence

from tetrapod.generic.discovery.handlers import DiscoverySource
from tetrapod.machinery.gvk import Object


class JoinedDiscovery:
    """Of a group-version that several have, the first one's counts."""

    def __init__(self, sources: Sequence[DiscoverySource]) -> None:
        self._sources = sources

    @property
    def generation(self) -> int:
        return sum(source.generation for source in self._sources)

    def core_versions(self) -> list[str]:
        return list(dict.fromkeys(v for source in self._sources for v in source.core_versions()))

    def groups(self) -> list[Object]:
        found: dict[str, Object] = {}
        for source in self._sources:
            for group in source.groups():
                found.setdefault(group["name"], group)
        return list(found.values())

    def resources(self, group: str, version: str) -> Object | None:
        return next((found for s in self._sources if (found := s.resources(group, version)) is not None), None)

    def aggregated(self, core: bool) -> list[Object]:
        return [item for source in self._sources for item in source.aggregated(core)]
