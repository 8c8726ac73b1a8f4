"""Where OpenAPI documents come from: `DocumentSource`, and the one of a server's own declarations.

A document's hash is made of what it is built from, so that the index of all documents costs no building. A server's source can
be joined with others' (`JoinedSource`), as the aggregator does.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Protocol

from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery.gvk import GroupVersion, Object


class DocumentSource(Protocol):
    async def index(self) -> Mapping[str, str]:
        """Name (`api/v1`, `apis/apps`, `version`) → hash."""
        ...

    def parts(self, name: str) -> AsyncIterator[Object]:
        """The document in parts, documents whose paths and schemas together are its own: of thousands of kinds it is large.

        The caller may change them. None come where there is no document of that name.
        """
        ...


class Whole:
    """For sources whose documents have one part."""

    async def document(self, name: str) -> Object | None:
        raise NotImplementedError

    async def parts(self, name: str) -> AsyncIterator[Object]:
        document = await self.document(name)
        if document is not None:
            yield document


class Definitions(Protocol):
    """What discovery's DefinitionSource is: the resources of each group-version."""

    @property
    def generation(self) -> int: ...
    def group_versions(self) -> list[GroupVersion]: ...
    def definitions(self, group: str, version: str) -> list[ResourceDefinition]: ...


class BuiltinSource(Whole):
    """Documents of declared resources, and of other endpoints by name (`extra`: `openid/v1/jwks`)."""

    def __init__(self, definitions: Definitions, extra: Mapping[str, Callable[[], Object]] | None = None) -> None:
        self._definitions = definitions
        self._extra = dict(extra or {})
        self._index: tuple[int, Mapping[str, str]] = (-1, {})

    async def index(self) -> Mapping[str, str]:
        generation = self._definitions.generation
        if self._index[0] != generation:
            self._index = (generation, await asyncio.to_thread(self._hashes))  # some hundred milliseconds of hashing
        return self._index[1]

    async def document(self, name: str) -> Object | None:
        build = self._builders().get(name)
        return None if build is None else await asyncio.to_thread(build)

    def _builders(self) -> dict[str, Callable[[], Object]]:
        from tetrapod.generic.openapi import v3  # for the first who asks

        found = dict(self._extra)
        for gv in self._definitions.group_versions():
            found[gv_name(gv)] = self._group_version_builder(gv)
            if gv.group:
                found[f"apis/{gv.group}"] = _group_builder(gv.group)
                found["apis"] = v3.apis_document
            else:
                found["api"] = v3.api_document
        return found

    def _group_version_builder(self, gv: GroupVersion) -> Callable[[], Object]:
        def build() -> Object:
            from tetrapod.generic.openapi import v3

            return v3.group_version_document(self._definitions.definitions(*gv), gv)

        return build

    def _hashes(self) -> dict[str, str]:
        from tetrapod.generic.openapi import v3

        of_resources = {
            gv_name(gv): [v3.resource_paths(d, gv.version) for d in self._definitions.definitions(*gv)]
            for gv in self._definitions.group_versions()
        }
        return {name: hash_of(name, of_resources.get(name)) for name in sorted(self._builders())}


def _group_builder(group: str) -> Callable[[], Object]:
    def build() -> Object:
        from tetrapod.generic.openapi import v3

        return v3.group_document(group)

    return build


class JoinedSource:
    """Several sources as one; of a name that several have, the first's document counts."""

    def __init__(self, sources: Sequence[DocumentSource]) -> None:
        self._sources = sources

    async def index(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for source in self._sources:
            for name, digest in (await source.index()).items():
                found.setdefault(name, digest)
        return dict(sorted(found.items()))

    async def parts(self, name: str) -> AsyncIterator[Object]:
        found = False
        for source in self._sources:
            async for part in source.parts(name):
                found = True
                yield part
            if found:
                return


def gv_name(gv: GroupVersion) -> str:
    return f"apis/{gv.group}/{gv.version}" if gv.group else f"api/{gv.version}"


def hash_of(*inputs: object) -> str:
    """The hash of a document made of these inputs (whose repr tells all of them) and of the facts of this package."""
    return hashlib.sha512(repr((_facts_digest(), inputs)).encode()).hexdigest().upper()


@cache
def _facts_digest() -> str:
    digest = hashlib.sha256()
    data = files("tetrapod.machinery.types").joinpath("data")
    for file in sorted(data.iterdir(), key=lambda f: f.name):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()
