"""Which resources there are, from aggregated discovery, for controllers that work on all of them.

A group-version that its server does not answer for is `Stale`: it is named, and the controllers go on with the others.
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
    gvr: GroupVersionResource
    kind: GroupVersionKind
    namespaced: bool
    verbs: frozenset[str]
    preferred: bool


@dataclass(frozen=True, slots=True)
class Discovered:
    resources: tuple[DiscoveredResource, ...]
    stale: tuple[str, ...]  # group-versions that could not be asked


async def discover(client: Client) -> Discovered:
    return await Discovery(client).resources()


class Discovery:
    """For who asks again and again: a document that has not changed is not taken apart again."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, tuple[bytes, Discovered]] = {}

    async def resources(self) -> Discovered:
        found = [await self._of(path) for path in ("/api", "/apis")]
        return Discovered(tuple(r for part in found for r in part.resources), tuple(s for part in found for s in part.stale))

    async def _of(self, path: str) -> Discovered:
        code, body = await self._client.raw("GET", path, headers={"accept": _ACCEPT})
        if code != 200:
            return Discovered((), (path,))
        digest = blake2b(body).digest()
        known = self._known.get(path)
        if known is None or known[0] != digest:
            known = self._known[path] = (digest, _parse(body))
        return known[1]


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
    """The same few sets, over and over."""
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
