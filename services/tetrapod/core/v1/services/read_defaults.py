"""Fields of stored Services that releases before Kubernetes 1.20 did not write: clusterIPs, ipFamilies, ipFamilyPolicy.

Readers and updates see them with these defaults.

Upstream: pkg/registry/core/service/storage/storage.go, defaultOnReadService.
"""

from __future__ import annotations

from typing import Any

from tetrapod.core.allocators.networks import family_of, other_family
from tetrapod.core.v1.services.changes import HEADLESS, needs_address
from tetrapod.machinery.gvk import Object


def may_be_incomplete(item: bytes) -> bool:
    """Return whether a stored Service may lack clusterIPs, ipFamilies or ipFamilyPolicy.

    Only the text is searched, so True may be wrong: a Service of type ExternalName has none of these fields.

    Args:
        item: the JSON text of the Service.
    """
    return b'"clusterIPs"' not in item or b'"ipFamilies"' not in item


def with_read_defaults(obj: Object, default_family: str) -> Object:
    """Return the Service with unset clusterIPs, ipFamilies and ipFamilyPolicy set; the same object if none is missing.

    Args:
        obj: a stored Service, which is not changed.
        default_family: the default IP family of the cluster.
    """
    spec = obj.get("spec")
    if not isinstance(spec, dict) or not (missing := _missing(spec, default_family)):
        return obj
    return {**obj, "spec": {**spec, **missing}}


def _missing(spec: Object, default_family: str) -> dict[str, Any]:
    """Return the fields clusterIPs, ipFamilies and ipFamilyPolicy that the spec lacks, by name, with their defaults."""
    missing: dict[str, Any] = {}
    ip, ips = spec.get("clusterIP"), spec.get("clusterIPs") or []
    if ip and isinstance(ip, str) and not ips:
        missing["clusterIPs"] = ips = [ip]
    if not needs_address(spec) or spec.get("ipFamilies") or not ips:
        return missing
    if ip != HEADLESS:
        families = [family_of(address) for address in ips]
    elif spec.get("selector"):
        families = [default_family]
    else:
        families = [default_family, other_family(default_family)]
    missing["ipFamilies"] = families
    missing["ipFamilyPolicy"] = "SingleStack" if len(families) == 1 else "RequireDualStack"
    return missing
