"""`Discovery`, which lists the served resources for controllers that work on all of them.

It reads aggregated discovery. A group-version is `Stale` there if its server does not answer. Such group-versions are
listed separately, and the controllers continue with the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

import orjson

from tetrapod.generic.client.interface import Client
from tetrapod.machinery.gvk import GroupVersionKind, GroupVersionResource

_ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@dataclass(frozen=True, slots=True)
class DiscoveredResource:
    """A resource in one served version.

    Attributes:
        gvr: the group, version and resource.
        kind: the kind of its objects, whose group and version can differ from those of `gvr`.
        preferred: whether this is the first of the group's versions that has the resource. The preferred version of the
            group is the first of all.
    """

    gvr: GroupVersionResource
    kind: GroupVersionKind
    namespaced: bool
    verbs: frozenset[str]
    preferred: bool


@dataclass(frozen=True, slots=True)
class Discovered:
    """The result of discovery.

    Attributes:
        resources: all resources in all versions, in the order of discovery.
        stale: the group-versions whose server did not answer, and "/api" or "/apis" if the server answered a request
            for that document with an error status.
    """

    resources: tuple[DiscoveredResource, ...]
    stale: tuple[str, ...]

    def may_have(self, gvr: GroupVersionResource) -> bool:
        """Return whether a resource that is not in `resources` may be served all the same, by a stale group-version."""
        return str(gvr.group_version) in self.stale or ("/apis" if gvr.group else "/api") in self.stale


async def discover(client: Client) -> Discovered:
    """Read the discovery documents and return all resources. `Discovery` is cheaper for repeated calls.

    Raises:
        Unavailable: the server did not respond.
    """
    return await Discovery(client).resources()


class Discovery:
    """A discovery client for repeated use, which parses a document again only if the document has changed."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, tuple[bytes, Discovered]] = {}

    async def resources(self) -> Discovered:
        """Read the discovery documents and return all resources.

        If the server answers with an error status, the document's path ("/api" or "/apis") is in `stale`.

        Raises:
            Unavailable: the server did not respond.
        """
        documents = [await self._of(path) for path in ("/api", "/apis")]
        return Discovered(
            tuple(r for part in documents for r in part.resources), tuple(s for part in documents for s in part.stale)
        )

    async def _of(self, path: str) -> Discovered:
        """Return the resources and stale group-versions of one discovery document.

        If the server answers with an error status, return no resources, and the path as stale.

        Args:
            path: "/api" or "/apis".

        Raises:
            Unavailable: the server did not respond.
        """
        code, body = await self._client.raw("GET", path, headers={"accept": _ACCEPT})
        if code != 200:
            return Discovered((), (path,))
        digest = blake2b(body).digest()
        cached = self._known.get(path)
        if cached is None or cached[0] != digest:
            cached = self._known[path] = (digest, _parse(body))
        return cached[1]


def _parse(body: bytes) -> Discovered:
    """Return the resources and stale group-versions in a discovery document.

    Upstream: staging/src/k8s.io/client-go/discovery/discovery_client.go, ServerPreferredResources
    """
    resources: list[DiscoveredResource] = []
    stale: list[str] = []
    for group in orjson.loads(body)["items"]:
        name = (group.get("metadata") or {}).get("name", "")
        known = set[str]()
        for version in group["versions"]:
            if version.get("freshness") == "Stale":
                stale.append(f"{name}/{version['version']}" if name else version["version"])
            served = version.get("resources") or ()
            resources.extend(_resource(name, version["version"], r, r["resource"] not in known) for r in served)
            known.update(r["resource"] for r in served)
    return Discovered(tuple(resources), tuple(stale))


@lru_cache(maxsize=64)
def _verbs(verbs: tuple[str, ...]) -> frozenset[str]:
    """Return the verbs as a frozenset. Equal verbs give the same object, because thousands of resources have them."""
    return frozenset(verbs)


def _resource(group: str, version: str, resource: dict[str, object], preferred: bool) -> DiscoveredResource:
    kind = resource["responseKind"]
    assert isinstance(kind, dict)
    verbs = resource["verbs"]
    assert isinstance(verbs, list)
    return DiscoveredResource(
        GroupVersionResource(group, version, str(resource["resource"])),
        GroupVersionKind(kind.get("group") or group, kind.get("version") or version, kind["kind"]),
        resource["scope"] == "Namespaced",
        _verbs(tuple(verbs)),
        preferred,
    )
