"""OpenAPI v3 documents of external API servers: a `DocumentSource`, to be joined with the local ones.

Upstream: kube-aggregator/pkg/controllers/openapiv3. Documents are fetched when asked for; only the indexes are kept.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qs, urlsplit

import orjson

from tetrapod.aggregator.apiservice import group_version, is_available
from tetrapod.aggregator.backends import Backends
from tetrapod.aggregator.routing import Records
from tetrapod.generic.certificates.bundles import UnusableBundle
from tetrapod.generic.openapi.source import Whole, gv_name, hash_of
from tetrapod.generic.proxy import BackendError
from tetrapod.generic.proxy.resolver import Unresolvable
from tetrapod.machinery.gvk import Object

log = logging.getLogger(__name__)

KEPT_SECONDS: Final = 60.0
PATIENCE: Final = 10.0


class ExternalOpenAPI(Whole):
    def __init__(self, records: Records, backends: Backends) -> None:
        self._records = records
        self._backends = backends
        self._indexes: dict[str, tuple[float, str, str]] = {}  # name of the APIService → when, document's hash, its URL

    async def index(self) -> Mapping[str, str]:
        objects = [obj for obj in self._records.external.values() if is_available(obj)]
        for name in self._indexes.keys() - {obj["metadata"]["name"] for obj in objects}:
            del self._indexes[name]
        found = await asyncio.gather(*(self._entry(obj) for obj in objects))
        return {gv_name(group_version(obj)): entry[0] for obj, entry in zip(objects, found, strict=True) if entry is not None}

    async def document(self, name: str) -> Object | None:
        obj = next((o for o in self._records.external.values() if gv_name(group_version(o)) == name), None)
        if obj is None or not is_available(obj) or (entry := await self._entry(obj)) is None:
            return None
        body = await self._get(obj, entry[1])
        if body is None:
            return None
        document: Object = orjson.loads(body)
        return document

    async def _entry(self, obj: Object) -> tuple[str, str] | None:
        """Hash and URL of an APIService's document; None where its server has none."""
        name = obj["metadata"]["name"]
        known = self._indexes.get(name)
        if known is None or time.monotonic() - known[0] > KEPT_SECONDS:
            digest, url = await self._look_up(obj)
            known = self._indexes[name] = (time.monotonic(), digest, url)
        return (known[1], known[2]) if known[1] else None

    async def _look_up(self, obj: Object) -> tuple[str, str]:
        body = await self._get(obj, "/openapi/v3")
        try:
            paths = orjson.loads(body)["paths"] if body else {}
            url = str(paths[gv_name(group_version(obj))]["serverRelativeURL"])
        except (ValueError, KeyError, TypeError):
            return "", ""
        given = parse_qs(urlsplit(url).query).get("hash", [""])[0]
        return given or hash_of(obj["metadata"].get("uid", ""), url), url

    async def _get(self, obj: Object, target: str) -> bytes | None:
        try:
            async with asyncio.timeout(PATIENCE):
                answer = await self._backends.fetch(obj, target, "application/json")
        except (BackendError, Unresolvable, UnusableBundle, TimeoutError) as error:
            log.info("OpenAPI of %s failed: %s", obj["metadata"]["name"], error)
            return None
        return answer.body if answer.status == 200 else None
