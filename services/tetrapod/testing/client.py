"""A minimal API client for tests, with plain dicts over HTTPS. It needs only the standard library.

Paths are found by discovery from an object's apiVersion and kind. For other needs use a complete client library with
the kubeconfig.
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
    """An error response.

    Attributes:
        code: the HTTP status code.
        reason: the reason of the Status, such as "NotFound"; "" if the response has none.
        status: the whole Status object, or an object with only `message` if the body is not JSON.
    """

    def __init__(self, code: int, body: bytes) -> None:
        """Create the error for a response with this status code and body."""
        try:
            self.status: Object = json.loads(body)
        except ValueError:
            self.status = {"message": body.decode("utf-8", "replace")}
        self.code = code
        self.reason = str(self.status.get("reason", ""))
        super().__init__(f"{code} {self.reason}: {self.status.get('message', '')}")


class Event(NamedTuple):
    """A watch event.

    Attributes:
        type: "ADDED", "MODIFIED", "DELETED" or "BOOKMARK".
        object: the object; for "BOOKMARK" only its `metadata.resourceVersion` is meaningful.
    """

    type: str
    object: Object


class Resource(NamedTuple):
    """The path of a resource.

    Attributes:
        path: the path of its group-version, such as `/api/v1` or `/apis/apps/v1`.
        plural: the plural name.
        namespaced: whether its objects are namespaced.
    """

    path: str
    plural: str
    namespaced: bool

    def at(self, namespace: str, name: str = "", subresource: str = "") -> str:
        """Return the path of the collection, an object or a subresource.

        Args:
            namespace: the namespace; "" for all namespaces. Ignored if the resource is not namespaced.
            name: the name of the object; "" for the collection.
            subresource: the subresource; "" for the object itself.
        """
        parts = [self.path]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        return "/".join([*parts, *(quote(part, safe=":") for part in (name, subresource) if part)])


class Client:
    """An API client with one connection, for one thread at a time.

    Each watch has its own connection. Any thread may call `close`, which ends watches. In all methods, a response with
    an error raises ApiError, and a connection that fails raises OSError.
    """

    TIMEOUT: Final = 60.0
    """The default timeout in seconds."""

    def __init__(self, url: str, ca: Path | str, token: str, timeout: float = TIMEOUT) -> None:
        """Create a client; it connects at the first request.

        Args:
            url: the base URL of the server.
            ca: the file with the CA of the server certificate.
            token: the bearer token.
            timeout: the seconds after which a connection attempt, or a read without data, fails with TimeoutError.
        """
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 443)
        self._context = ssl.create_default_context(cafile=str(ca))
        self._token = token
        self._timeout = timeout
        self._connection: http.client.HTTPSConnection | None = None
        self._watches: list[http.client.HTTPSConnection] = []
        self._resources: dict[tuple[str, str], Resource] = {}

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Object:
        """Send a request and return the decoded response.

        It is repeated once if the server has closed the idle connection.

        Args:
            method: the HTTP method.
            path: the path with its query string.
            body: an object to encode as JSON, bytes to send as they are, or None.
            content_type: the media type of the body.

        Returns:
            The decoded JSON of the response; {} if it has no body.

        Raises:
            ApiError: the status of the response is 300 or higher.
            OSError: the connection failed.
        """
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
        """Return an object. `namespace` is ignored for kinds that are not namespaced.

        Raises:
            ApiError: the server rejected the request; code 404 if the object does not exist.
            LookupError: the server does not serve the kind.
        """
        return self.request("GET", self.resource(api_version, kind).at(namespace, name))

    def list(self, api_version: str, kind: str, namespace: str = "", **query: Any) -> list[Object]:
        """Return the items of a list, as the server sends them.

        Args:
            api_version: the `group/version`, or `v1`.
            kind: the kind of the items.
            namespace: the namespace; "" for all namespaces.
            query: query parameters, such as labelSelector and fieldSelector.

        Raises:
            ApiError: the server rejected the request.
            LookupError: the server does not serve the kind.
        """
        items: list[Object] = (
            self.request("GET", self.resource(api_version, kind).at(namespace) + _query(query)).get("items") or []
        )
        return items

    def create(self, obj: Object, namespace: str = "default") -> Object:
        """Create an object and return it as stored.

        Args:
            obj: the object, with apiVersion and kind.
            namespace: the namespace if the object names none.

        Raises:
            ApiError: the server rejected the object.
            LookupError: the server does not serve the kind.
        """
        return self.request("POST", self._path(obj, namespace, named=False), obj)

    def update(self, obj: Object, subresource: str = "", namespace: str = "default") -> Object:
        """Replace an object or a subresource of it, and return it as stored.

        Args:
            obj: the whole object, with apiVersion, kind and name.
            subresource: the subresource, such as "status"; "" for the object itself.
            namespace: the namespace if the object names none.

        Raises:
            ApiError: the server rejected the object; code 409 if its resourceVersion is not current.
            LookupError: the server does not serve the kind.
        """
        return self.request("PUT", self._path(obj, namespace, subresource), obj)

    def apply(self, obj: Object, namespace: str = "default", field_manager: str = "tetrapod-testing") -> Object:
        """Apply an object by server-side apply with force, and return it as stored.

        Args:
            obj: the apply configuration, with apiVersion, kind and name.
            namespace: the namespace if the object names none.
            field_manager: the name of the field manager.

        Raises:
            ApiError: the server rejected the object.
            LookupError: the server does not serve the kind.
        """
        path = self._path(obj, namespace) + _query({"fieldManager": field_manager, "force": "true"})
        return self.request("PATCH", path, obj, "application/apply-patch+yaml")

    def patch(
        self,
        api_version: str,
        kind: str,
        name: str,
        patch: Any,
        namespace: str = "default",
        type: str = "merge",
        subresource: str = "",
    ) -> Object:
        """Patch an object or a subresource of it, and return it as stored.

        Args:
            api_version: the `group/version`, or `v1`.
            kind: the kind of the object.
            name: the name of the object.
            patch: the patch: an object, or a list of operations for "json".
            namespace: the namespace; ignored for kinds that are not namespaced.
            type: the type of the patch: "merge", "strategic" or "json".
            subresource: the subresource, such as "status"; "" for the object itself.

        Raises:
            ApiError: the server rejected the patch.
            LookupError: the server does not serve the kind.
        """
        path = self.resource(api_version, kind).at(namespace, name, subresource)
        return self.request("PATCH", path, patch, _PATCHES[type])

    def delete(self, api_version: str, kind: str, name: str, namespace: str = "default", **query: Any) -> Object:
        """Delete an object, and return the response: the object, or a Status.

        Args:
            api_version: the `group/version`, or `v1`.
            kind: the kind of the object.
            name: the name of the object.
            namespace: the namespace; ignored for kinds that are not namespaced.
            query: query parameters, such as propagationPolicy.

        Raises:
            ApiError: the server rejected the request; code 404 if the object does not exist.
            LookupError: the server does not serve the kind.
        """
        return self.request("DELETE", self.resource(api_version, kind).at(namespace, name) + _query(query))

    def watch(self, api_version: str, kind: str, namespace: str = "", **query: Any) -> Iterator[Event]:
        """Yield events as they happen.

        The watch ends when the server ends it or the client is closed. Close the iterator to stop it.

        Args:
            api_version: the `group/version`, or `v1`.
            kind: the kind of the objects.
            namespace: the namespace; "" for all namespaces.
            query: query parameters, such as resourceVersion, after which events are sent, and labelSelector.

        Raises:
            ApiError: the server rejected the watch, or sent an ERROR event; code 410 if the resource version is too
                old.
            LookupError: the server does not serve the kind.
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
        """Return the resource of a kind, found by discovery and cached.

        Raises:
            LookupError: the server does not serve the kind.
        """
        resource = self._resources.get((api_version, kind))
        if resource is None:
            self._discover(api_version)
            resource = self._resources.get((api_version, kind))
        if resource is None:
            raise LookupError(f"the server does not serve kind {kind} in {api_version}")
        return resource

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
                self._resources[api_version, resource["kind"]] = Resource(
                    path, resource["name"], resource["namespaced"]
                )

    def _path(self, obj: Object, namespace: str, subresource: str = "", *, named: bool = True) -> str:
        metadata = obj.get("metadata") or {}
        resource = self.resource(obj["apiVersion"], obj["kind"])
        return resource.at(
            metadata.get("namespace") or namespace, metadata.get("name", "") if named else "", subresource
        )

    def _headers(self, content_type: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}", "Content-Type": content_type, "Accept": "application/json"}

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(*self._address, timeout=self._timeout, context=self._context)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Close the connection and end all watches."""
        self._drop()
        while self._watches:
            _wake(self._watches.pop())


def _wake(connection: http.client.HTTPSConnection) -> None:
    """Shut down the socket of a connection, so that a thread that is blocked in a read from it continues.

    That thread then closes the connection; `close` in this thread would block until the read returns.
    """
    if connection.sock is not None:
        with contextlib.suppress(OSError):
            # The TLS layer continues and reads the end of the stream.
            socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)


def _query(query: Mapping[str, Any]) -> str:
    return f"?{urlencode(query)}" if query else ""
