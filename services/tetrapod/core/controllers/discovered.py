"""Which resources there are, from aggregated discovery, for controllers that work on all of them.

A group-version that its server does not answer for is `Stale`: it is named, and the controllers go on with the others.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    resources: list[DiscoveredResource] = []
    stale: list[str] = []
    for path in ("/api", "/apis"):
        code, body = await client.raw("GET", path, headers={"accept": _ACCEPT})
        if code != 200:
            stale.append(path)
            continue
        for group in orjson.loads(body)["items"]:
            name = (group.get("metadata") or {}).get("name", "")
            for i, version in enumerate(group["versions"]):
                if version.get("freshness") == "Stale":
                    stale.append(f"{name}/{version['version']}" if name else version["version"])
                resources.extend(_resource(name, version["version"], r, i == 0) for r in version.get("resources") or ())
    return Discovered(tuple(resources), tuple(stale))


def _resource(group: str, version: str, resource: dict[str, object], preferred: bool) -> DiscoveredResource:
    kind = resource["responseKind"]
    assert isinstance(kind, dict)
    verbs = resource["verbs"]
    assert isinstance(verbs, list)
    return DiscoveredResource(
        GroupVersionResource(group, version, str(resource["resource"])),
        GroupVersionKind(kind.get("group") or group, kind.get("version") or version, kind["kind"]),
        resource["scope"] == "Namespaced",
        frozenset(verbs),
        preferred,
    )
