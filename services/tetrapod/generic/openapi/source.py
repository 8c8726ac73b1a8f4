"""Sources of OpenAPI documents: the protocol `DocumentSource`, and the source of a server's own resources.

The hash of a document is computed from the inputs of its generation, so that the index of all documents does not
require building them. A server's source can be joined with others (`JoinedSource`), as in the aggregator.
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
    """A source of OpenAPI v3 documents, each of which has a name: `api/v1`, `apis/apps`, `version`."""

    async def index(self) -> Mapping[str, str]:
        """Return the hashes of all documents by name."""
        ...

    def parts(self, name: str) -> AsyncIterator[Object]:
        """Yield a document in parts, or nothing if no document has this name.

        A part is a document with some of the paths and schemas of the whole. Documents are split because those with
        thousands of kinds are large. The caller may modify the parts.
        """
        ...


class SinglePartSource:
    """A base class of document sources whose documents have one part. Subclasses define `document`."""

    async def document(self, name: str) -> Object | None:
        """Return the document of this name, which the caller may modify, or None if it does not exist."""
        raise NotImplementedError

    async def parts(self, name: str) -> AsyncIterator[Object]:
        """Yield the document of this name as one part, or nothing if it does not exist."""
        document = await self.document(name)
        if document is not None:
            yield document


class Definitions(Protocol):
    """The resources that a server serves in each group-version. `generation` grows with each change of them."""

    @property
    def generation(self) -> int: ...
    def group_versions(self) -> list[GroupVersion]: ...
    def definitions(self, group: str, version: str) -> list[ResourceDefinition]: ...


class BuiltinSource(SinglePartSource):
    """The source of the OpenAPI documents of a server's built-in resources and of its other endpoints."""

    def __init__(self, definitions: Definitions, extra: Mapping[str, Callable[[], Object]] | None = None) -> None:
        """Create the source.

        Args:
            definitions: the resources; later changes are followed.
            extra: functions that build the documents of other endpoints, by name (`openid/v1/jwks`).
        """
        self._definitions = definitions
        self._extra = dict(extra or {})
        self._index: tuple[int, Mapping[str, str]] = (-1, {})

    async def index(self) -> Mapping[str, str]:
        """Return the hashes of all documents by name, computed again in a thread if the definitions have changed."""
        generation = self._definitions.generation
        if self._index[0] != generation:
            self._index = (generation, await asyncio.to_thread(self._hashes))  # hashing takes some hundred milliseconds
        return self._index[1]

    async def document(self, name: str) -> Object | None:
        """Build the OpenAPI v3 document of this name (`apis/apps/v1`) in a thread; return None for unknown names."""
        build = self._builders().get(name)
        return None if build is None else await asyncio.to_thread(build)

    def _builders(self) -> dict[str, Callable[[], Object]]:
        from tetrapod.generic.openapi import v3  # imported on first use

        builders = dict(self._extra)
        for gv in self._definitions.group_versions():
            builders[gv_name(gv)] = self._group_version_builder(gv)
            if gv.group:
                builders[f"apis/{gv.group}"] = _group_builder(gv.group)
                builders["apis"] = v3.apis_document
            else:
                builders["api"] = v3.api_document
        return builders

    def _group_version_builder(self, gv: GroupVersion) -> Callable[[], Object]:
        def build() -> Object:
            from tetrapod.generic.openapi import v3

            return v3.group_version_document(self._definitions.definitions(*gv), gv)

        return build

    def _hashes(self) -> dict[str, str]:
        from tetrapod.generic.openapi import v3

        paths_by_name = {
            gv_name(gv): [v3.resource_paths(d, gv.version) for d in self._definitions.definitions(*gv)]
            for gv in self._definitions.group_versions()
        }
        return {name: hash_of(name, paths_by_name.get(name)) for name in sorted(self._builders())}


def _group_builder(group: str) -> Callable[[], Object]:
    def build() -> Object:
        from tetrapod.generic.openapi import v3

        return v3.group_document(group)

    return build


class JoinedSource:
    """Several document sources as one.

    If several have a document of the same name, that of the first source is used.
    """

    def __init__(self, sources: Sequence[DocumentSource]) -> None:
        self._sources = sources

    async def index(self) -> Mapping[str, str]:
        """Return the hashes of the documents of all sources, sorted by name."""
        digests: dict[str, str] = {}
        for source in self._sources:
            for name, digest in (await source.index()).items():
                digests.setdefault(name, digest)
        return dict(sorted(digests.items()))

    async def parts(self, name: str) -> AsyncIterator[Object]:
        """Yield the parts of a document from the first source that has it, or nothing if none has it."""
        exists = False
        for source in self._sources:
            async for part in source.parts(name):
                exists = True
                yield part
            if exists:
                return


def gv_name(gv: GroupVersion) -> str:
    """Return the name of the document of a group-version: `api/v1`, `apis/apps/v1`."""
    return f"apis/{gv.group}/{gv.version}" if gv.group else f"api/{gv.version}"


def hash_of(*inputs: object) -> str:
    """Return the hash of a document, computed from its inputs, so that the document need not be built.

    Args:
        inputs: the values that the document is generated from, besides the package's data files. The repr of each must
            show everything that affects the document.
    """
    return hashlib.sha512(repr((_facts_digest(), inputs)).encode()).hexdigest().upper()


@cache
def _facts_digest() -> str:
    digest = hashlib.sha256()
    data = files("tetrapod.machinery.types").joinpath("data")
    for file in sorted(data.iterdir(), key=lambda f: f.name):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()
