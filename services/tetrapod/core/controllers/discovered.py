"""The served resources according to aggregated discovery, for controllers that work on all of them.

A group-version whose server does not answer is marked `Stale`. It is listed separately, and the controllers continue
with the others.
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
    """A served resource; `preferred` says that its version is the first of its group."""

    gvr: GroupVersionResource
    kind: GroupVersionKind
    namespaced: bool
    verbs: frozenset[str]
    preferred: bool


@dataclass(frozen=True, slots=True)
class Discovered:
    """The result of discovery: resources and stale group-versions."""

    resources: tuple[DiscoveredResource, ...]
    stale: tuple[str, ...]  # group-versions whose server did not answer

    def may_have(self, gvr: GroupVersionResource) -> bool:
        """Return whether a resource that was not found may be served all the same.

        This is so if its group-version is stale.
        """
        return str(gvr.group_version) in self.stale or ("/apis" if gvr.group else "/api") in self.stale


async def discover(client: Client) -> Discovered:
    """Read the discovery documents once."""
    return await Discovery(client).resources()


class Discovery:
    """A discovery client for repeated use: it parses a document again only if the document has changed."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, tuple[bytes, Discovered]] = {}

    async def resources(self) -> Discovered:
        """Read the discovery documents and return all resources."""
        documents = [await self._of(path) for path in ("/api", "/apis")]
        return Discovered(
            tuple(r for part in documents for r in part.resources), tuple(s for part in documents for s in part.stale)
        )

    async def _of(self, path: str) -> Discovered:
        """Return the resources below /api or /apis; a document that cannot be read counts as stale."""
        code, body = await self._client.raw("GET", path, headers={"accept": _ACCEPT})
        if code != 200:
            return Discovered((), (path,))
        digest = blake2b(body).digest()
        cached = self._known.get(path)
        if cached is None or cached[0] != digest:
            cached = self._known[path] = (digest, _parse(body))
        return cached[1]


def _parse(body: bytes) -> Discovered:
    resources: list[DiscoveredResource] = []
    stale: list[str] = []
    for group in orjson.loads(body)["items"]:
        name = (group.get("metadata") or {}).get("name", "")
        for i, version in enumerate(group["versions"]):
            if version.get("freshness") == "Stale":
                stale.append(f"{name}/{version['version']}" if name else version["version"])
            resources.extend(_resource(name, version["version"], r, i == 0) for r in version.get("resources") or ())
    return Discovered(tuple(resources), tuple(stale))


@lru_cache(maxsize=64)
def _verbs(verbs: tuple[str, ...]) -> frozenset[str]:
    """Return a frozenset shared by all resources with the same verbs."""
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
