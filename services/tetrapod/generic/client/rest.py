"""`RestClient`: the verbs of the API as methods, over a transport that sends requests and returns responses or streams.

Upstream: k8s.io/client-go/rest and dynamic. `inprocess.py` and `http.py` are the two transports.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final, Protocol
from urllib.parse import quote, urlencode

import msgspec
import orjson

from tetrapod.generic.client.interface import ClientEvent
from tetrapod.generic.client.partial_decoding import decode_event, decode_list
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError

PATCH_TYPES: Final = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


_PARTIAL: Final = {"accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
_PARTIAL_LIST: Final = {"accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}


class Transport(Protocol):
    """A means to send requests to a server: over HTTPS (`http.py`) or within the process (`inprocess.py`)."""

    async def send(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        """Send a request and return the status code and the body, for error responses too.

        `target` is the path with the query.

        Raises:
            Unavailable: the server did not respond.
        """
        ...

    def stream(self, target: str, headers: dict[str, str]) -> AsyncIterator[bytes]:
        """Send a GET and yield the nonempty lines of the response as they arrive.

        Raises:
            StatusError: the status is not 200.
            Unavailable: the server did not respond, or the connection broke.
        """
        ...


def resource_path(gvr: GroupVersionResource, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Return the path of a collection, an object or a subresource, escaped for a URL.

    An empty `namespace`, `name` or `subresource` is left out.
    """
    segments = ["/apis", gvr.group, gvr.version] if gvr.group else ["/api", gvr.version]
    if namespace:
        segments += ["namespaces", quote(namespace, safe="")]
    segments.append(gvr.resource)
    if name:
        segments.append(quote(name, safe=":"))
    if subresource:
        segments.append(subresource)
    return "/".join(segments)


def error_from(code: int, body: bytes) -> StatusError:
    """Return (not raise) the error for a response with an error status.

    If the body is a Status, the error has its code, reason, message and details. Otherwise it has `code`, and the
    body as its message.

    Args:
        code: the status code of the response.
        body: the body.

    Upstream: transformResponse
    """
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        status = None
    if isinstance(status, dict) and status.get("kind") == "Status":
        return StatusError(
            int(status.get("code", code)), status.get("reason", ""), status.get("message", ""), status.get("details")
        )
    return StatusError(code, "", body.decode("utf-8", "replace").strip() or f"unexpected status {code}", {})


class RestClient:
    """An implementation of `Client` over a transport.

    Args:
        transport: sends the requests.
        user_agent: the User-Agent header of each request.
    """

    def __init__(self, transport: Transport, user_agent: str) -> None:
        self._transport = transport
        self._headers = {"accept": "application/json", "user-agent": user_agent}

    async def _call(
        self,
        method: str,
        path: str,
        query: dict[str, Any],
        body: Any = None,
        content_type: str = "application/json",
        *,
        partial: bool = False,
        only: type[msgspec.Struct] | None = None,
    ) -> Object:
        target = path + _query(query)
        data = b"" if body is None else body if isinstance(body, bytes) else orjson.dumps(body)
        headers = {**self._headers, "content-type": content_type} if body is not None else self._headers
        if partial:
            headers = {**headers, **_PARTIAL_LIST}
        code, response = await self._transport.send(method, target, data, headers)
        if code >= 300:
            raise error_from(code, response)
        if only is not None:
            return decode_list(only, response)
        obj: Object = orjson.loads(response)
        return obj

    async def get(self, gvr: GroupVersionResource, namespace: str, name: str, *, subresource: str = "") -> Object:
        return await self._call("GET", resource_path(gvr, namespace, name, subresource), {})

    async def list(
        self,
        gvr: GroupVersionResource,
        namespace: str = "",
        *,
        metadata_only: bool = False,
        only: type[msgspec.Struct] | None = None,
        **query: Any,
    ) -> Object:
        return await self._call("GET", resource_path(gvr, namespace), query, partial=metadata_only, only=only)

    async def watch(
        self,
        gvr: GroupVersionResource,
        namespace: str = "",
        *,
        metadata_only: bool = False,
        only: type[msgspec.Struct] | None = None,
        **query: Any,
    ) -> AsyncIterator[ClientEvent]:
        target = resource_path(gvr, namespace) + _query({**query, "watch": "true"})
        headers = {**self._headers, **_PARTIAL} if metadata_only else self._headers
        async for line in self._transport.stream(target, headers):
            event = decode_event(only, line) if only is not None else orjson.loads(line)
            yield ClientEvent(event["type"], event["object"])

    async def create(
        self,
        gvr: GroupVersionResource,
        namespace: str,
        obj: Object,
        *,
        name: str = "",
        subresource: str = "",
        **query: Any,
    ) -> Object:
        return await self._call("POST", resource_path(gvr, namespace, name, subresource), query, obj)

    async def update(
        self, gvr: GroupVersionResource, namespace: str, obj: Object, *, subresource: str = "", **query: Any
    ) -> Object:
        return await self._call("PUT", resource_path(gvr, namespace, obj["metadata"]["name"], subresource), query, obj)

    async def patch(
        self,
        gvr: GroupVersionResource,
        namespace: str,
        name: str,
        patch: Any,
        *,
        type: str = "merge",
        subresource: str = "",
        **query: Any,
    ) -> Object:
        return await self._call(
            "PATCH", resource_path(gvr, namespace, name, subresource), query, patch, PATCH_TYPES[type]
        )

    async def delete(
        self, gvr: GroupVersionResource, namespace: str, name: str, options: Object | None = None
    ) -> Object:
        return await self._call("DELETE", resource_path(gvr, namespace, name), {}, options)

    async def delete_collection(
        self, gvr: GroupVersionResource, namespace: str, options: Object | None = None, **query: Any
    ) -> Object:
        return await self._call("DELETE", resource_path(gvr, namespace), query, options)

    async def raw(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        return await self._transport.send(method, path, body, {**self._headers, **(headers or {})})


def _query(query: dict[str, Any]) -> str:
    parameters = {
        k: ("true" if v is True else "false" if v is False else v) for k, v in query.items() if v not in (None, "")
    }
    return "?" + urlencode(parameters) if parameters else ""
