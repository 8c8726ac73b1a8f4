"""`Client`: the API over plain HTTPS and plain dicts, for tests. Needs nothing but the standard library.

Objects say themselves what they are: paths are found by discovery. For more use a real client library, by kubeconfig.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

_PATCHES: Final = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}
Object = dict[str, Any]


class ApiError(Exception):
    """A refusal: `code`, `reason` and the whole Status that the server answered."""

    def __init__(self, code: int, body: bytes) -> None:
        try:
            self.status: Object = json.loads(body)
        except ValueError:
            self.status = {"message": body.decode("utf-8", "replace")}
        self.code = code
        self.reason = str(self.status.get("reason", ""))
        super().__init__(f"{code} {self.reason}: {self.status.get('message', '')}")


class Event(NamedTuple):
    """One of a watch: ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    object: Object


class Resource(NamedTuple):
    path: str  # /api/v1, /apis/apps/v1
    plural: str
    namespaced: bool

    def at(self, namespace: str, name: str = "", subresource: str = "") -> str:
        parts = [self.path]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        return "/".join([*parts, *(quote(part, safe=":") for part in (name, subresource) if part)])


class Client:
    """One connection, used by one thread at a time; each watch has its own. `close` may be called by any: it ends watches."""

    TIMEOUT: Final = 60.0

    def __init__(self, url: str, ca: Path | str, token: str, timeout: float = TIMEOUT) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 443)
        self._context = ssl.create_default_context(cafile=str(ca))
        self._token = token
        self._timeout = timeout
        self._connection: http.client.HTTPSConnection | None = None
        self._watches: list[http.client.HTTPSConnection] = []
        self._known: dict[tuple[str, str], Resource] = {}

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Object:
        """Any request; `body` is an object, or bytes. Returns the decoded answer. Raises ApiError."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        for attempt in (1, 2):
            fresh = self._connection is None
            connection = self._connection = self._connection or self._connect()
            try:
                connection.request(method, path, data, self._headers(content_type))
                response = connection.getresponse()
                answer = response.read()
                break
            except (http.client.RemoteDisconnected, ConnectionError):
                self._drop()
                if fresh or attempt == 2:
                    raise
        if response.will_close:
            self._drop()
        if response.status >= 300:
            raise ApiError(response.status, answer)
        return json.loads(answer) if answer else {}

    def get(self, api_version: str, kind: str, name: str, namespace: str = "default") -> Object:
        return self.request("GET", self.resource(api_version, kind).at(namespace, name))

    def list(self, api_version: str, kind: str, namespace: str = "", **query: Any) -> list[Object]:
        """The items; without a namespace, of all. `query`: labelSelector, fieldSelector, …"""
        items: list[Object] = self.request("GET", self.resource(api_version, kind).at(namespace) + _query(query)).get("items") or []
        return items

    def create(self, obj: Object, namespace: str = "default") -> Object:
        return self.request("POST", self._path(obj, namespace, named=False), obj)

    def update(self, obj: Object, subresource: str = "", namespace: str = "default") -> Object:
        return self.request("PUT", self._path(obj, namespace, subresource), obj)

    def apply(self, obj: Object, namespace: str = "default", field_manager: str = "tetrapod-testing") -> Object:
        """Server-side apply; conflicts are won."""
        path = self._path(obj, namespace) + _query({"fieldManager": field_manager, "force": "true"})
        return self.request("PATCH", path, obj, "application/apply-patch+yaml")

    def patch(
        self, api_version: str, kind: str, name: str, patch: Any, namespace: str = "default", type: str = "merge", subresource: str = ""
    ) -> Object:
        """`type` is merge, strategic or json."""
        path = self.resource(api_version, kind).at(namespace, name, subresource)
        return self.request("PATCH", path, patch, _PATCHES[type])

    def delete(self, api_version: str, kind: str, name: str, namespace: str = "default", **query: Any) -> Object:
        return self.request("DELETE", self.resource(api_version, kind).at(namespace, name) + _query(query))

    def watch(self, api_version: str, kind: str, namespace: str = "", **query: Any) -> Iterator[Event]:
        """Events as they happen, from `resourceVersion` on if it is given.

        Ends when the server ends it, or the client is closed; `close` the iterator to stop.
        """
        path = self.resource(api_version, kind).at(namespace) + _query({**query, "watch": "true"})
        connection = self._connect()
        self._watches.append(connection)
        response: http.client.HTTPResponse | None = None
        try:
            connection.request("GET", path, headers=self._headers("application/json"))
            response = connection.getresponse()
            if response.status != 200:
                raise ApiError(response.status, response.read())
            for line in response:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ApiError(int(event["object"].get("code", 500)), json.dumps(event["object"]).encode())
                yield Event(event["type"], event["object"])
        except (OSError, http.client.HTTPException):
            if connection in self._watches:
                raise
        finally:
            if connection in self._watches:
                self._watches.remove(connection)
            connection.close()
            if response is not None:
                response.close()

    def resource(self, api_version: str, kind: str) -> Resource:
        """Where objects of a kind are. Raises LookupError where none is served."""
        found = self._known.get((api_version, kind))
        if found is None:
            self._discover(api_version)
            found = self._known.get((api_version, kind))
        if found is None:
            raise LookupError(f"no kind {kind} in {api_version} is served")
        return found

    def _discover(self, api_version: str) -> None:
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        try:
            answer = self.request("GET", path)
        except ApiError as error:
            if error.code == 404:
                return
            raise
        for resource in answer["resources"]:
            if "/" not in resource["name"]:
                self._known[api_version, resource["kind"]] = Resource(path, resource["name"], resource["namespaced"])

    def _path(self, obj: Object, namespace: str, subresource: str = "", *, named: bool = True) -> str:
        metadata = obj.get("metadata") or {}
        resource = self.resource(obj["apiVersion"], obj["kind"])
        return resource.at(metadata.get("namespace") or namespace, metadata.get("name", "") if named else "", subresource)

    def _headers(self, content_type: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}", "Content-Type": content_type, "Accept": "application/json"}

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(*self._address, timeout=self._timeout, context=self._context)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        self._drop()
        while self._watches:
            _wake(self._watches.pop())


def _wake(connection: http.client.HTTPSConnection) -> None:
    """End what is read from it, by whichever thread: that one closes it. (`close` would wait for what that thread waits for.)"""
    if connection.sock is not None:
        with contextlib.suppress(OSError):
            socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)  # TLS goes on, and finds the end


def _query(query: Mapping[str, Any]) -> str:
    return f"?{urlencode(query)}" if query else ""
