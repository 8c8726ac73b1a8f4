"""PartialObjectMetadata: the metadata of an object as an object, sliced out of its finished bytes.

Follows asPartialObjectMetadata of k8s.io/apiserver/pkg/endpoints/handlers/response.go.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tetrapod.generic.negotiation.accept import PARTIAL


class _Metadata(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


_decoder: Final = msgspec.json.Decoder(_Metadata)


def metadata_of(raw: bytes) -> bytes:
    """The bytes of `metadata`; nothing else of the object is built."""
    return bytes(_decoder.decode(raw).metadata)


def partial_bytes(raw: bytes, version: str) -> bytes:
    """The object as PartialObjectMetadata of meta.k8s.io/`version`."""
    return b'{"kind":"%b","apiVersion":"meta.k8s.io/%b","metadata":%b}' % (PARTIAL.encode(), version.encode(), metadata_of(raw))
