"""`PeerChecks`: the health checks and other listed paths of a peer service, which the aggregator shows as its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Final
from urllib.parse import quote

import orjson

from tetrapod.aggregator.delegation.connection import PeerConnection
from tetrapod.generic.lifecycle import ENDPOINTS
from tetrapod.generic.proxy import BackendError
from tetrapod.machinery.shared_call import SharedCall

_LINE: Final = re.compile(r"\[([+-])\](\S+) ")
_LISTED: Final = ("/.well-known/", "/openid/", *(f"/{endpoint}/" for endpoint in ENDPOINTS))
"""The beginnings of a service's paths that the aggregator lists at `/`. It serves other paths itself."""
_UNREACHABLE: Final = "the service cannot be reached"
_WITHHELD: Final = "reason withheld"


class PeerChecks:
    """The health checks of one peer service, which the aggregator shows beside its own. Implements `RemoteChecks`.

    The aggregator adds a check `service/NAME`, which fails if the service cannot be reached.

    Args:
        connection: sends requests to the service.

    Attributes:
        known: whether the list of the service's paths has been read. Until then the names of its checks are unknown.
    """

    def __init__(self, connection: PeerConnection) -> None:
        self._connection = connection
        self._reachable = f"service/{connection.name}"
        self._paths: tuple[str, ...] = ()
        self._calls = {endpoint: SharedCall(partial(self._fetch, endpoint)) for endpoint in ENDPOINTS}
        self.known = False

    async def refresh(self) -> None:
        """Read the list of paths at `/` of the peer service, and store it.

        Only the paths of health checks and of OpenID discovery are stored. `paths` and `names` return them, and `known`
        becomes True.

        Raises:
            BackendError, TimeoutError: the service cannot be reached.
            ValueError, KeyError: the response is not a list of paths.
        """
        _, _, body = await self._connection.get("/")
        self._paths = tuple(path for path in orjson.loads(body)["paths"] if path.startswith(_LISTED))
        self.known = True

    def paths(self) -> tuple[str, ...]:
        """Return the service's paths that the aggregator lists at `/`: those of health checks and of OpenID discovery.

        The result is empty until `refresh` has read them.
        """
        return self._paths

    def names(self, endpoint: str) -> list[str]:
        """Return the names of the service's checks on an endpoint, or [] until `refresh` has read them.

        Args:
            endpoint: `healthz`, `livez` or `readyz`.
        """
        prefix = f"/{endpoint}/"
        return [path.removeprefix(prefix) for path in self._paths if path.startswith(prefix)]

    async def results(self, endpoint: str) -> Mapping[str, str | None]:
        """Run the service's checks on an endpoint (`healthz`, `livez` or `readyz`).

        Return, by the name of the check, the reason of its failure, or None if it passed. Concurrent calls share a
        request. If the service cannot be reached, or responds with a status other than 200 and 500, all its known
        checks fail. /livez leaves out a service that has not been reached since the start, because a post-start hook,
        to which the grace period applies, reports it.
        """
        return await self._calls[endpoint]()

    async def _fetch(self, endpoint: str) -> Mapping[str, str | None]:
        try:
            status, _, body = await self._connection.get(f"/{endpoint}?verbose", "*/*")
            if status not in (200, 500):
                raise BackendError(f"status {status} of /{endpoint}")
        except (BackendError, TimeoutError):
            if endpoint == "livez" and not self.known:
                return {}
            return dict.fromkeys([*self.names(endpoint), self._reachable], _UNREACHABLE)
        lines = map(_LINE.match, body.decode().splitlines())
        results = {line[2]: None if line[1] == "+" else _WITHHELD for line in lines if line is not None}
        return {**results, self._reachable: None}

    async def result(self, endpoint: str, name: str) -> str | None:
        """Run one of the service's checks, and return the reason of its failure, or None if it passed.

        If the service cannot be reached or has no such check, the result is a reason too; nothing is raised.

        Args:
            endpoint: `healthz`, `livez` or `readyz`.
            name: the name of the check.
        """
        try:
            status, _, body = await self._connection.get(f"/{endpoint}/{quote(name)}", "*/*")
        except (BackendError, TimeoutError):
            return _UNREACHABLE
        return None if status == 200 else body.decode().removeprefix("internal server error: ").rstrip("\n")
