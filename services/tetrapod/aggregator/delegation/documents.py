"""`PeerDocuments`: the OpenAPI documents of a peer service (core, extensions or auth), for the aggregator."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from urllib.parse import parse_qs, quote, urlsplit

import orjson

from tetrapod.aggregator.delegation.connection import PeerConnection
from tetrapod.aggregator.delegation.groups import service_of
from tetrapod.generic.openapi.transfer import MEDIA_TYPE, received_parts
from tetrapod.generic.proxy import BackendError
from tetrapod.machinery import status
from tetrapod.machinery.gvk import Object

log = logging.getLogger(__name__)


class PeerDocuments:
    """The OpenAPI v3 documents of one peer service, received in parts. Implements `DocumentSource`.

    A service that cannot be reached has no documents in the index. An error in the middle of a document fails the whole
    document, which is not cached.

    Args:
        connection: sends requests to the service.
    """

    def __init__(self, connection: PeerConnection) -> None:
        self._connection = connection

    async def index(self) -> Mapping[str, str]:
        """Return the hashes of the service's documents by name, or {} if the service cannot be reached."""
        try:
            code, _, body = await self._connection.get("/openapi/v3")
        except (BackendError, TimeoutError):
            return {}
        if code != 200:
            return {}
        hashes = {}
        for name, entry in orjson.loads(body)["paths"].items():
            if self._serves(name):
                hashes[name] = parse_qs(urlsplit(entry["serverRelativeURL"]).query).get("hash", [""])[0]
        return hashes

    def _serves(self, name: str) -> bool:
        """Return whether the OpenAPI document with this name describes APIs of this service, not of another.

        Args:
            name: the path of the document below `/openapi/v3/`, such as "api/v1" or "apis/apps/v1".
        """
        parts = name.split("/")
        if parts[0] == "api":
            return self._connection.name == "core"
        if parts[0] == "apis" and len(parts) > 1:
            return service_of(parts[1]) == self._connection.name
        return parts[0] not in ("version",)

    async def parts(self, name: str) -> AsyncIterator[Object]:
        """Yield the parts of the document with this name; nothing if the service has no such document.

        Raises:
            StatusError: 503, the service cannot be reached or the document ends early.
        """
        if not self._serves(name):
            return
        try:
            async for part in received_parts(self._connection.stream(f"/openapi/v3/{quote(name)}", MEDIA_TYPE)):
                yield part
        except (BackendError, TimeoutError, ValueError) as error:
            log.warning("OpenAPI document %s of %s: %s", name, self._connection.name, error or type(error).__name__)
            raise status.service_unavailable(f"error trying to reach service: {error}") from None
