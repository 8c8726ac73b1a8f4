"""OpenAPI v3 documents of custom resources: one document for each group-version.

Documents are built on request from the current definitions, and are not cached; only their hashes are.

Upstream: apiextensions-apiserver/pkg/controller/openapiv3.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from tetrapod.extensions.crds import Crd, Crds
from tetrapod.generic.openapi.source import gv_name, hash_of
from tetrapod.generic.scheduling.offload import LARGE
from tetrapod.machinery.gvk import GroupVersion, Object
from tetrapod.machinery.schema.structural_rules import is_structural

if TYPE_CHECKING:
    from tetrapod.generic.openapi.custom import CustomKind


class CustomOpenAPI:
    """A `DocumentSource` of the OpenAPI v3 documents of custom resources, one document for each group-version.

    Args:
        crds: the current definitions.
    """

    def __init__(self, crds: Crds) -> None:
        self._crds = crds
        self._index: tuple[int, Mapping[str, str]] = (-1, {})

    async def index(self) -> Mapping[str, str]:
        """Return the hashes of the documents by name, such as "apis/example.com/v1".

        Implements `DocumentSource.index`.
        """
        if self._index[0] != self._crds.generation:
            served = sorted(self._crds.served().items())
            self._index = (self._crds.generation, {gv_name(gv): _hash(gv, crds) for gv, crds in served})
        return self._index[1]

    async def parts(self, name: str) -> AsyncIterator[Object]:
        """Yield a document for each kind of a group-version; the caller joins their paths and schemas.

        Documents of large definitions are built in a thread, and other tasks of the event loop run between two
        documents. Implements `DocumentSource.parts`.

        Args:
            name: the name in `index`. An unknown name yields nothing.
        """
        from tetrapod.generic.openapi.custom import custom_parts

        for gv, crds in self._served(name):
            parts = custom_parts((_kind(crd, gv.version) for crd in crds), gv)
            for crd in crds:
                large = len(crd.entry.raw) >= LARGE
                yield await asyncio.to_thread(next, parts) if large else next(parts)
                await asyncio.sleep(0)

    def _served(self, name: str) -> list[tuple[GroupVersion, list[Crd]]]:
        return [(gv, crds) for gv, crds in self._crds.served().items() if gv_name(gv) == name]


def _hash(gv: GroupVersion, crds: list[Crd]) -> str:
    return hash_of(gv_name(gv), [crd.serving_key for crd in crds])


def _kind(crd: Crd, version: str) -> CustomKind:
    from tetrapod.generic.openapi.custom import CustomKind

    spec = crd.object()["spec"]
    declared = next(v for v in spec["versions"] if v["name"] == version)
    crd_version = crd.version(version)
    assert crd_version is not None
    schema = (declared.get("schema") or {}).get("openAPIV3Schema")
    if spec.get("preserveUnknownFields") or (schema and not is_structural(schema)):
        schema = None
    return CustomKind(
        kind=crd.accepted.kind,
        list_kind=crd.accepted.list_kind,
        plural=crd.plural,
        namespaced=crd.namespaced,
        schema=schema,
        status=crd_version.status,
        scale=crd_version.scale,
        selectable=tuple(field["jsonPath"].removeprefix(".") for field in declared.get("selectableFields") or ()),
    )
