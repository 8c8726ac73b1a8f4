"""Several discovery sources as one, for a server with both built-in and custom resources."""

from __future__ import annotations

from collections.abc import Sequence

from tetrapod.generic.discovery.handlers import DiscoverySource
from tetrapod.machinery.gvk import Object


class JoinedDiscovery:
    """The union of several discovery sources.

    If several sources have a group-version, the first one describes it. The same holds for the classic document of a
    group; its aggregated document has the versions of all sources.
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
        by_name: dict[str, Object] = {}
        for source in self._sources:
            for item in source.aggregated(core):
                former = by_name.get(item["metadata"].get("name", ""))
                by_name[item["metadata"].get("name", "")] = item if former is None else _joined(former, item)
        return list(by_name.values())


def _joined(first: Object, second: Object) -> Object:
    """Return the APIGroupDiscovery `first` with the versions of `second` that it lacks."""
    known = {version["version"] for version in first["versions"]}
    more = [version for version in second["versions"] if version["version"] not in known]
    return {**first, "versions": [*first["versions"], *more]}
