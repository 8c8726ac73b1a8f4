"""Between the versions of a custom resource.

With strategy None versions differ in apiVersion, and each has the fields of its own schema. Webhooks are not asked yet: where one
would be needed the answer is a Status that says so. Upstream: apiextensions-apiserver/pkg/apiserver/conversion.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from tetrapod.extensions.custom.versions import ServedVersion
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.schema import pruning
from tetrapod.machinery.status import StatusError

Convert = Callable[[Object, str], Object]
ConvertMany = Callable[[Sequence[Object], str], Awaitable[list[Object]]]


def converter(group: str, versions: Mapping[str, ServedVersion], storage_version: str) -> Convert | None:
    """None where renaming is all."""
    if all(v.schema == versions[storage_version].schema for v in versions.values()):
        return None

    def convert(obj: Object, version: str) -> Object:
        obj["apiVersion"] = str(GroupVersion(group, version))
        # What goes into storage is pruned once it is validated, by the strategy.
        if version != storage_version:
            pruning.prune(versions[version].node, obj)
        return obj

    return convert


def webhook_converter(group: str, kind: str, conversion: Object) -> ConvertMany:
    async def convert_many(objects: Sequence[Object], version: str) -> list[Object]:
        wanted = str(GroupVersion(group, version))
        for obj in objects:
            if obj["apiVersion"] != wanted:
                raise _refusal(GroupVersionKind(group, GroupVersion.parse(obj["apiVersion"]).version, kind), conversion)
        return list(objects)

    return convert_many


def _refusal(given: GroupVersionKind, conversion: Object) -> StatusError:
    client = (conversion.get("webhook") or {}).get("clientConfig") or {}
    service = client.get("service") or {}
    where = f"https://{service.get('name')}.{service.get('namespace')}.svc:{service.get('port', 443)}{service.get('path') or '/'}"
    url = client.get("url") or where
    text = f'conversion webhook for {given} failed: Post "{url}?timeout=30s": this server does not call conversion webhooks yet'
    return StatusError(500, "", text)
