"""The OpenAPI v3 documents of external API servers, as a `DocumentSource` that is merged with the local ones.

Documents are fetched on request; only the indexes are cached. The Swagger 2.0 document of a server that has no OpenAPI
v3 is converted.

Upstream: kube-aggregator/pkg/controllers/openapiv3.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

import orjson

from tetrapod.aggregator.apiservice import group_version, is_available, service_of
from tetrapod.aggregator.backends import Backends, Document
from tetrapod.aggregator.routing import Records
from tetrapod.generic.certificates.bundles import UnusableBundle
from tetrapod.generic.openapi.source import SinglePartSource, gv_name, hash_of
from tetrapod.generic.proxy import BackendError
from tetrapod.generic.proxy.resolver import Unresolvable
from tetrapod.machinery.gvk import Object

log = logging.getLogger(__name__)

KEPT_SECONDS: Final = 60.0
FIRST_RETRY: Final = 1.0  # seconds after a failure, doubled with each further one up to KEPT_SECONDS
TIMEOUT: Final = 10.0
_SWAGGER: Final = "/openapi/v2"


class _Entry(NamedTuple):
    """The hash and the URL of a document, as an index lists them.

    Attributes:
        swagger: whether the document at the URL is one of Swagger 2.0, from a server without OpenAPI v3.
    """

    digest: str
    url: str
    swagger: bool = False


class _Unreadable(Exception):
    """The error for a server whose index cannot be read: it is unreachable, responds with an error or is malformed."""


@dataclass(slots=True)
class _Index:
    """The index of one server, as it was last read.

    Attributes:
        obj: the APIService at the last attempt to read it.
        entries: the documents by name.
        due: when to read it again (time.monotonic()).
        failures: the number of failed attempts since the last success or change of the APIService.
        lock: held during an attempt. Other requests wait for its result.
    """

    obj: Object
    entries: Mapping[str, _Entry] = field(default_factory=dict)
    due: float = 0.0
    failures: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def is_due(self, obj: Object) -> bool:
        """Return whether to read it now: the time has come, or a failure precedes a change of the APIService."""
        return time.monotonic() >= self.due or (self.failures > 0 and self.obj is not obj)


class ExternalOpenAPI(SinglePartSource):
    """The OpenAPI v3 documents of external API servers, for their registered group-versions and groups.

    Other documents of these servers are ignored.

    Args:
        records: all APIServices.
        backends: connections to the external servers.
    """

    def __init__(self, records: Records, backends: Backends) -> None:
        self._records = records
        self._backends = backends
        self._indexes: dict[str, _Index] = {}  # by the name of the APIService

    async def index(self) -> Mapping[str, str]:
        """Return the hashes of all documents by name, such as "apis/metrics.k8s.io/v1beta1".

        The documents of servers that are not available are left out.
        """
        return {name: entry.digest for name, (_, entry) in (await self._documents()).items()}

    async def document(self, name: str) -> Object | None:
        """Fetch and return the document with this name, such as "apis/metrics.k8s.io/v1beta1".

        Returns:
            None if no server has it, or if it cannot be fetched within 10 seconds or encoded.
        """
        listed = (await self._documents()).get(name)
        if listed is None:
            return None
        obj, entry = listed
        answer = await self._get(obj, entry.url)
        if answer is None or answer.status != 200:
            return None
        document = await asyncio.to_thread(_read, answer.body, swagger=entry.swagger)
        if document is None:
            log.warning(
                "%s of %s is no OpenAPI document that can be merged with others", entry.url, obj["metadata"]["name"]
            )
        return document

    async def _documents(self) -> Mapping[str, tuple[Object, _Entry]]:
        """Return all documents by name, each with the APIService that serves it.

        Servers that are unavailable have none. If several servers have a document, the first in the order of discovery
        counts.
        """
        objects = [
            obj
            for _, members in self._records.groups
            for obj in members
            if service_of(obj) is not None and is_available(obj)
        ]
        for name in self._indexes.keys() - {obj["metadata"]["name"] for obj in objects}:
            del self._indexes[name]
        documents: dict[str, tuple[Object, _Entry]] = {}
        for obj, entries in zip(objects, await asyncio.gather(*(self._entries(obj) for obj in objects)), strict=True):
            for name, entry in entries.items():
                documents.setdefault(name, (obj, entry))
        return documents

    async def _entries(self, obj: Object) -> Mapping[str, _Entry]:
        """Return hash and URL of the documents for the group-version and the group of an APIService, by document name.

        They come from the server's index, which is cached for 60 seconds. If it cannot be read, the last entries stay,
        and the next attempt follows after a second, then twice as long each time, up to 60 seconds. A change of the
        APIService, such as of its availability, ends this delay.

        Upstream: kube-aggregator/pkg/controllers/openapiv3/controller.go, UpdateAPIService
        """
        index = self._indexes.setdefault(obj["metadata"]["name"], _Index(obj))
        if not index.is_due(obj):
            return index.entries
        async with index.lock:
            if index.is_due(obj):
                failures = index.failures if index.obj is obj else 0
                try:
                    index.entries, failures, delay = await self._look_up(obj), 0, KEPT_SECONDS
                except _Unreadable as error:
                    log.info("OpenAPI index of %s: %s", obj["metadata"]["name"], error)
                    failures += 1
                    delay = min(FIRST_RETRY * 2 ** min(failures - 1, 10), KEPT_SECONDS)
                index.obj, index.failures, index.due = obj, failures, time.monotonic() + delay
        return index.entries

    async def _look_up(self, obj: Object) -> Mapping[str, _Entry]:
        """Read the index of a server, and return the entries of its group-version and its group, by document name.

        If the server responds with 404, as it has no OpenAPI v3, the only entry is its Swagger 2.0 document under the
        name of the group-version, as upstream. The same entry is added if the index lacks the group-version, because
        upstream reads the Swagger document for /openapi/v2 in any case. The result is empty if there is neither.

        Upstream: kube-aggregator/pkg/controllers/openapiv3/aggregator/aggregator.go, updateAPIServiceSpecLocked

        Raises:
            _Unreadable: the server cannot be reached, responds with another error or sends a malformed index.
        """
        answer = await self._get_unless_failed(obj, "/openapi/v3")
        entries = {} if answer is None else self._listed(obj, answer)
        name = gv_name(group_version(obj))
        if name not in entries and (answer := await self._get_unless_failed(obj, _SWAGGER)) is not None:
            digest = hash_of(obj["metadata"].get("uid", ""), hashlib.sha256(answer.body).hexdigest())
            entries[name] = _Entry(digest, _SWAGGER, swagger=True)
        return entries

    @staticmethod
    def _listed(obj: Object, answer: Document) -> dict[str, _Entry]:
        """Return the entries of an index for the group-version and the group of an APIService, by document name.

        Raises:
            _Unreadable: the index is malformed.
        """
        gv = group_version(obj)
        entries: dict[str, _Entry] = {}
        try:
            paths = orjson.loads(answer.body)["paths"]
        except (ValueError, KeyError, TypeError) as error:
            raise _Unreadable("the index is malformed") from error
        for name in (gv_name(gv), f"apis/{gv.group}") if gv.group else (gv_name(gv),):
            try:
                url = str(paths[name]["serverRelativeURL"])
                server_hash = parse_qs(urlsplit(url).query).get("hash", [""])[0]
            except (KeyError, TypeError):
                continue
            except ValueError as error:
                raise _Unreadable(f"the index has an invalid URL: {error}") from error
            entries[name] = _Entry(server_hash or hash_of(obj["metadata"].get("uid", ""), url), url)
        return entries

    async def _get_unless_failed(self, obj: Object, target: str) -> Document | None:
        """Return the response of a server with status 200, or None if it responds with 404.

        Raises:
            _Unreadable: the server cannot be reached or responds with another status.
        """
        answer = await self._get(obj, target)
        if answer is None or answer.status not in (200, 404):
            raise _Unreadable(f"{target} {'cannot be fetched' if answer is None else f'has status {answer.status}'}")
        return answer if answer.status == 200 else None

    async def _get(self, obj: Object, target: str) -> Document | None:
        """Return the response of a server, with any status code.

        Return None if the server cannot be reached, or has not answered completely within 10 seconds.
        """
        try:
            async with asyncio.timeout(TIMEOUT):
                return await self._backends.fetch(obj, target, "application/json")
        except (BackendError, Unresolvable, UnusableBundle, TimeoutError) as error:
            log.info("OpenAPI of %s failed: %s", obj["metadata"]["name"], error)
            return None


def _read(body: bytes, *, swagger: bool) -> Object | None:
    """Decode an OpenAPI v3 document, or decode one of Swagger 2.0 (`swagger`) and convert it to OpenAPI v3.

    Return None if it is malformed, or if a format of OpenAPI responses cannot encode it.
    """
    from tetrapod.generic.openapi.document_chunks import JsonForm  # imported on first use
    from tetrapod.generic.openapi.from_v2 import v3_of
    from tetrapod.generic.openapi.protobuf_v2 import ProtobufForm
    from tetrapod.generic.openapi.v2 import convertible

    try:
        document: Object = orjson.loads(body)
        document = v3_of(document) if swagger else document
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return None
    return document if convertible(document, (JsonForm(), ProtobufForm())) else None
