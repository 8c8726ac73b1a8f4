"""The messages of Status and discovery documents, which are encoded byte for byte as Go's generated code does.

Go writes every field that is not a pointer, even if it is empty. These documents are the same on every server, so that
their bytes can be compared with upstream's. Stored objects differ from server to server, and are encoded without empty
fields (encoding.py).

Upstream: `MarshalToSizedBuffer` in k8s.io/apimachinery/pkg/apis/meta/v1/generated.pb.go and in the packages of the
other messages.
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
"""The messages of such documents, and their fields that are pointers in Go."""

METADATA: Final = {
    META + "ListMeta": frozenset({"remainingItemCount", "shardInfo"}),
    META + "ObjectMeta": frozenset({"deletionTimestamp", "deletionGracePeriodSeconds"}),
}
"""The metadata messages, and their fields that are pointers in Go. They are encoded this way only within such a
document.
"""

ZEROES: Final[dict[str, str | int]] = {"string": "", "int32": 0, "int64": 0, "bool": False}
