"""The parts of an event that are known before a request is served: user, source, request URI and object reference.

Upstream: k8s.io/apiserver/pkg/audit/request.go, and SourceIPs of apimachinery's pkg/util/net/http.go
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from tetrapod.generic.http.request import Request
from tetrapod.machinery.boundedcache import bounded
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.requestinfo import RequestInfo
from tetrapod.machinery.user import UserInfo

_MAX_USER_AGENT: Final = 1024


def head_of(request: Request, user: UserInfo | None) -> Object:
    """Return the fields requestURI, verb and user of an audit event.

    Args:
        request: the request.
        user: the authenticated user, or None if authentication failed; then the event's user is empty.
    """
    target = f"{request.raw_path}?{request.query_string}" if request.query_string else request.raw_path
    assert request.info is not None
    return {"requestURI": target, "verb": request.info.verb, "user": {} if user is None else user_info(user)}


def origin_of(request: Request) -> Object:
    """Return the fields sourceIPs and userAgent of an audit event, without empty ones.

    A long user agent is truncated.
    """
    origin: Object = {}
    if addresses := source_addresses(request):
        origin["sourceIPs"] = addresses
    if agent := request.header(b"user-agent"):
        origin["userAgent"] = agent if len(agent) <= _MAX_USER_AGENT else f"{agent[:_MAX_USER_AGENT]}...TRUNCATED"
    return origin


def reference_of(info: RequestInfo | None) -> Object | None:
    """Return the event's objectRef as far as the path gives it; the other fields are "".

    The result is None for a request that is not for a resource.
    """
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
    """Return the fields of objectRef that come from the object in the body, as pairs; some values may be empty or None.

    Args:
        metadata: the metadata of that object.
        resource: the resource of the endpoint.
        subresource: the subresource, or "".
    """
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
    """Convert a user to an authentication.k8s.io/v1 UserInfo without empty fields."""
    info: Object = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": user.extra}
    return {key: value for key, value in info.items() if value}


def source_addresses(request: Request) -> list[str]:
    """Return the addresses of X-Forwarded-For, X-Real-Ip and the connection, in this order, without invalid ones.

    X-Real-Ip is left out if it was listed before, and the connection if it equals the last one.
    Upstream: k8s.io/apimachinery/pkg/util/net, SourceIPs
    """
    addresses = [a for part in request.header(b"x-forwarded-for").split(",") if (a := _address(part.strip()))]
    real = _address(request.header(b"x-real-ip"))
    if real and real not in addresses:
        addresses.append(real)
    remote = _address(request.remote)
    if remote and addresses[-1:] != [remote]:
        addresses.append(remote)
    return addresses


@bounded(count=2048, size=256 << 10, largest=512)
def _address(text: str) -> str:
    """Format an address as Go does; "" if it is invalid. Go's ParseIPSloppy accepts leading zeros and no zones."""
    if not text:
        return ""
    if "." in text and ":" not in text:
        text = ".".join(
            part.lstrip("0") or "0" if part.isascii() and part.isdigit() else part for part in text.split(".")
        )
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return ""
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
    return str(address)
