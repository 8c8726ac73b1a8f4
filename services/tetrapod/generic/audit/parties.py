"""Who asks from where, and for what: the parts of an event that are known before a request is served.

Upstream: k8s.io/apiserver/pkg/audit/request.go, and SourceIPs of apimachinery's pkg/util/net/http.go.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Any, Final

from tetrapod.generic.request import Request
from tetrapod.generic.user import UserInfo
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.requestinfo import RequestInfo

_MAX_USER_AGENT: Final = 1024


def head_of(request: Request, user: UserInfo | None) -> Object:
    """The request that was made, and by whom; `user` is None where nobody knows."""
    target = f"{request.raw_path}?{request.query_string}" if request.query_string else request.raw_path
    assert request.info is not None
    return {"requestURI": target, "verb": request.info.verb, "user": {} if user is None else user_info(user)}


def origin_of(request: Request) -> Object:
    """From where, and with what."""
    found: Object = {}
    if addresses := source_addresses(request):
        found["sourceIPs"] = addresses
    if agent := request.header(b"user-agent"):
        found["userAgent"] = agent if len(agent) <= _MAX_USER_AGENT else f"{agent[:_MAX_USER_AGENT]}...TRUNCATED"
    return found


def reference_of(info: RequestInfo | None) -> Object | None:
    """An ObjectReference with every field, as the path says it; None where it names no resource."""
    if info is None or not info.is_resource_request:
        return None
    return {
        "resource": info.resource,
        "namespace": info.namespace,
        "name": info.name,
        "uid": "",
        "apiGroup": info.api_group,
        "apiVersion": info.api_version,
        "resourceVersion": "",
        "subresource": info.subresource,
    }


def identity_of(metadata: Object, resource: GroupVersionResource, subresource: str) -> tuple[tuple[str, Any], ...]:
    """Fields of an ObjectReference that an object itself knows."""
    return (
        ("namespace", metadata.get("namespace")),
        ("name", metadata.get("name")),
        ("uid", metadata.get("uid")),
        ("resourceVersion", metadata.get("resourceVersion")),
        ("apiGroup", resource.group),
        ("apiVersion", resource.version),
        ("resource", resource.resource),
        ("subresource", subresource),
    )


def user_info(user: UserInfo) -> Object:
    """authentication.k8s.io/v1 UserInfo."""
    found: Object = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": user.extra}
    return {key: value for key, value in found.items() if value}


def source_addresses(request: Request) -> list[str]:
    """X-Forwarded-For, X-Real-Ip and the connection's own, in that order (upstream: apimachinery's util/net SourceIPs)."""
    found = [a for part in request.header(b"x-forwarded-for").split(",") if (a := _address(part.strip()))]
    real = _address(request.header(b"x-real-ip"))
    if real and real not in found:
        found.append(real)
    remote = _address(request.remote)
    if remote and found[-1:] != [remote]:
        found.append(remote)
    return found


@lru_cache(maxsize=1024)
def _address(text: str) -> str:
    """As Go writes it; "" for what is none. Go's sloppy parser takes leading zeros, and none of the zones."""
    if not text:
        return ""
    if "." in text and ":" not in text:
        text = ".".join(part.lstrip("0") or "0" if part.isascii() and part.isdigit() else part for part in text.split("."))
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv6Address):
        if found.scope_id is not None:
            return ""
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
    return str(found)
