"""A mixed load of clients that, like kubectl, do not retry.

Every request uses a new connection to an aggregator that is ready.

Responses that every Kubernetes client must expect are not failures and have counters of their own: a watch that ended,
and a 429 or 503 with Retry-After.
"""

from __future__ import annotations

import http.client
import itertools
import json
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
_PAUSE = 0.02


class Balancer:
    """A client-side load balancer: sends requests to the aggregators in turn, without those whose /readyz fails."""

    def __init__(self, urls: Sequence[str], ca: Path, token: str) -> None:
        self._ready = dict.fromkeys(urls, True)
        self._turn = itertools.count()
        self._context = ssl.create_default_context(cafile=str(ca))
        self._token = token

    def connect(self, url: str, timeout: float) -> http.client.HTTPSConnection:
        address = urlsplit(url)
        assert address.hostname is not None
        return http.client.HTTPSConnection(address.hostname, address.port, context=self._context, timeout=timeout)

    def ask(
        self, method: str, path: str, body: Any = None, kind: str = "json"
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        while not (ready := [url for url, good in self._ready.items() if good]):
            time.sleep(0.02)
        connection = self.connect(ready[next(self._turn) % len(ready)], 30)
        headers = {"Authorization": f"Bearer {self._token}", "Connection": "close"}
        if body is not None:
            headers["Content-Type"] = f"application/{kind}"
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            return connection, connection.getresponse()
        except BaseException:
            connection.close()
            raise

    def probe_all(self) -> None:
        """Check /readyz of each server and mark it ready or not; a timeout leaves the mark unchanged."""
        for url in self._ready:
            connection = self.connect(url, 2)
            try:
                connection.request("GET", "/readyz")
                self._ready[url] = connection.getresponse().status == 200
            except TimeoutError:
                continue
            except (OSError, http.client.HTTPException):
                self._ready[url] = False
            finally:
                connection.close()


class Load:
    """The load and its result.

    Attributes:
        failures: must be empty at the end.
        done: successful requests by verb.
        retry_later: responses with Retry-After, by verb.
    """

    def __init__(self, balancer: Balancer, custom: str) -> None:
        self._balancer = balancer
        self._custom = custom
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self.done: Counter[str] = Counter()
        self.retry_later: Counter[str] = Counter()
        self.watches_ended = 0
        self.failures: list[str] = []
        self.made: set[str] = set()
        self.seen: set[str] = set()

    def _try(
        self, verb: str, method: str, path: str, body: Any = None, *, expect: int = 200, kind: str = "json"
    ) -> Any:
        """Send a request and return the decoded response, or None if it failed or has a Retry-After."""
        began = time.monotonic()
        try:
            connection, response = self._balancer.ask(method, path, body, kind)
            try:
                data = response.read()
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            with self._lock:
                self.failures.append(
                    f"{verb} {path}: {type(error).__name__} {error} after {time.monotonic() - began:.2f} s"
                )
            return None
        with self._lock:
            if response.status == expect:
                self.done[verb] += 1
                return json.loads(data)
            if response.status in (429, 503) and response.headers.get("Retry-After"):
                self.retry_later[verb] += 1
            else:
                self.failures.append(
                    f"{verb} {path}: {response.status} {data[:300]!r} after {time.monotonic() - began:.2f} s"
                )
        return None

    def write(self, worker: int) -> None:
        for number in itertools.count():
            name = f"c{worker}-{number}"
            made = self._try(
                "create", "POST", CONFIG_MAPS, {"metadata": {"name": name}, "data": {"a": "1"}}, expect=201
            )
            if made is not None:
                self.made.add(name)
                made["data"]["a"] = "2"
                self._try("update", "PUT", f"{CONFIG_MAPS}/{name}", made)
                self._try("patch", "PATCH", f"{CONFIG_MAPS}/{name}", {"data": {"b": "3"}}, kind="merge-patch+json")
                found = self._try("get", "GET", f"{CONFIG_MAPS}/{name}")
                if found is not None and found["data"] != {"a": "2", "b": "3"} and not self.retry_later:
                    self.failures.append(f"{name} has {found['data']}")
                if number % 3 == 0:
                    self._try("delete", "DELETE", f"{CONFIG_MAPS}/{name}")
            if self._ending.wait(_PAUSE):
                return

    def mixed(self, worker: int) -> None:
        """Send requests to the services other than core."""
        review = {"spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}}}
        for number in itertools.count():
            custom = {
                "apiVersion": "load.example.com/v1",
                "kind": "Widget",
                "metadata": {"name": f"w{worker}-{number}"},
                "spec": {},
            }
            self._try("create custom", "POST", self._custom, custom, expect=201)
            self._try("list custom", "GET", self._custom)
            self._try("list", "GET", f"{CONFIG_MAPS}?limit=20")
            self._try("review", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review, expect=201)
            self._try(
                "token", "POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {}}, expect=201
            )
            self._try("roles", "GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles?limit=5")
            self._try("discovery", "GET", "/apis")
            if self._ending.wait(_PAUSE):
                return

    def watch(self, worker: int) -> None:
        version = ""
        while not self._ending.is_set():
            if not version:
                page = self._try("list", "GET", CONFIG_MAPS)
                if page is None:
                    continue
                version = page["metadata"]["resourceVersion"]
                self.seen.update(item["metadata"]["name"] for item in page["items"])
            try:
                version = self._follow(version)
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(f"watch: {type(error).__name__} {error}")

    def _follow(self, version: str) -> str:
        path = f"{CONFIG_MAPS}?watch=true&allowWatchBookmarks=true&timeoutSeconds=5&resourceVersion={version}"
        connection, response = self._balancer.ask("GET", path)
        try:
            if response.status != 200:
                if not (response.status in (429, 503) and response.headers.get("Retry-After")):
                    self.failures.append(f"watch: {response.status} {response.read()[:300]!r}")
                self._ending.wait(_PAUSE)
                return version
            while line := response.readline():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    self.failures.append(f"watch: {event['object']}")
                    return ""
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] == "ADDED":
                    self.seen.add(event["object"]["metadata"]["name"])
            self.watches_ended += 1
            return version
        finally:
            connection.close()

    def probe(self, worker: int) -> None:
        while not self._ending.wait(0.1):
            self._balancer.probe_all()

    @contextmanager
    def running(self) -> Iterator[None]:
        work: list[Callable[[int], None]] = [self.probe, self.watch, self.write, self.write, self.mixed]
        threads = [threading.Thread(target=do, args=(number,), name=do.__name__) for number, do in enumerate(work)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            deadline = time.monotonic() + 10
            while not self.made <= self.seen and time.monotonic() < deadline:
                self._ending.wait(0.1)
            self._ending.set()
            for thread in threads:
                thread.join(40)
