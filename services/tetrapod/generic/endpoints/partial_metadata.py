"""PartialObjectMetadata: the metadata of an object, sliced from its encoded bytes.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/response.go, asPartialObjectMetadata
"""

from __future__ import annotations

from typing import Final

import msgspec

from tetrapod.generic.http.negotiation.accept import PARTIAL


class _Metadata(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


_decoder: Final = msgspec.json.Decoder(_Metadata)


def metadata_of(raw: bytes) -> bytes:
    """Return the JSON bytes of an encoded object's `metadata`, `{}` if it has none, without parsing the rest."""
    return bytes(_decoder.decode(raw).metadata)


def partial_bytes(raw: bytes, version: str) -> bytes:
    """Return the JSON of the PartialObjectMetadata (of meta.k8s.io/`version`) of the encoded object `raw`."""
    return b'{"kind":"%b","apiVersion":"meta.k8s.io/%b","metadata":%b}' % (
        PARTIAL.encode(),
        version.encode(),
        metadata_of(raw),
    )
