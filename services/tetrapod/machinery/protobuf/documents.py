"""Refusals and discovery documents, byte for byte as Go's generated code writes them: what is no pointer is there even where it is empty.

Their bytes are the same from one server to the next, so they can be compared; those of stored objects cannot, and are written shorter
(encoding.py). Follows `MarshalToSizedBuffer` of k8s.io/apimachinery/pkg/apis/meta/v1/generated.pb.go and of the packages beside it.
"""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.protobuf.messages import META

_CORE: Final = "io.k8s.api.core.v1."
_DISCOVERY: Final = "io.k8s.api.apidiscovery.v2."
_ALL_WRITTEN: Final[frozenset[str]] = frozenset()

NULLABLE: Final = {
    META + "APIGroup": _ALL_WRITTEN,
    META + "APIGroupList": _ALL_WRITTEN,
    META + "APIResource": frozenset({"verbs"}),
    META + "APIResourceList": _ALL_WRITTEN,
    META + "APIVersions": _ALL_WRITTEN,
    META + "GroupVersionForDiscovery": _ALL_WRITTEN,
    META + "GroupVersionKind": _ALL_WRITTEN,
    META + "ServerAddressByClientCIDR": _ALL_WRITTEN,
    META + "Status": frozenset({"details"}),
    META + "StatusCause": _ALL_WRITTEN,
    META + "StatusDetails": _ALL_WRITTEN,
    _DISCOVERY + "APIGroupDiscovery": _ALL_WRITTEN,
    _DISCOVERY + "APIGroupDiscoveryList": _ALL_WRITTEN,
    _DISCOVERY + "APIResourceDiscovery": frozenset({"responseKind"}),
    _DISCOVERY + "APISubresourceDiscovery": frozenset({"responseKind"}),
    _DISCOVERY + "APIVersionDiscovery": _ALL_WRITTEN,
    _CORE + "ComponentCondition": _ALL_WRITTEN,
    _CORE + "ComponentStatus": _ALL_WRITTEN,
}
"""The messages of such documents, and which of their fields are pointers in Go."""

METADATA: Final = {
    META + "ListMeta": frozenset({"remainingItemCount", "shardInfo"}),
    META + "ObjectMeta": frozenset({"deletionTimestamp", "deletionGracePeriodSeconds"}),
}
"""The same of metadata, which is written so within such a document only."""

ZEROES: Final[dict[str, str | int]] = {"string": "", "int32": 0, "int64": 0, "bool": False}
