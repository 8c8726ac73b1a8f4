"""OpenAPI v3 documents of custom resources: `CustomOpenAPI` is a `DocumentSource`, one document for each group-version.

Built when it is asked for, from the definitions as they are then, and not kept. Upstream:
apiextensions-apiserver/pkg/controller/openapiv3.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from tetrapod.extensions.crds import Crd, Crds
from tetrapod.generic.openapi.custom import CustomKind, custom_document
from tetrapod.generic.openapi.source import gv_name, hash_of
from tetrapod.machinery.gvk import GroupVersion, Object
from tetrapod.machinery.schema.structural_rules import unsupported, validate_structural


class CustomOpenAPI:
    """Implements `DocumentSource`."""

    def __init__(self, crds: Crds) -> None:
        self._crds = crds

    async def index(self) -> Mapping[str, str]:
        return {gv_name(gv): _hash(gv, crds) for gv, crds in sorted(self._crds.served().items())}

    async def document(self, name: str) -> Object | None:
        for gv, crds in self._crds.served().items():
            if gv_name(gv) == name:
                return await asyncio.to_thread(_document, gv, crds)
        return None


def _document(gv: GroupVersion, crds: list[Crd]) -> Object:
    return custom_document([_kind(crd, gv.version) for crd in crds], gv)


def _hash(gv: GroupVersion, crds: list[Crd]) -> str:
    return hash_of(gv_name(gv), [crd.serving_key for crd in crds])


def _kind(crd: Crd, version: str) -> CustomKind:
    spec = crd.object()["spec"]
    declared = next(v for v in spec["versions"] if v["name"] == version)
    found = crd.version(version)
    assert found is not None
    schema = (declared.get("schema") or {}).get("openAPIV3Schema")
    if spec.get("preserveUnknownFields") or (schema and (unsupported(schema) or validate_structural(schema, ""))):
        schema = None
    return CustomKind(
        kind=crd.accepted.kind,
        list_kind=crd.accepted.list_kind,
        plural=crd.plural,
        namespaced=crd.namespaced,
        schema=schema,
        status=found.status,
        scale=found.scale,
    )
