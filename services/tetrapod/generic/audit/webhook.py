"""The webhook backend, which posts batches of events as an EventList to an HTTPS server, with retries.

Upstream: plugin/pkg/audit/webhook/webhook.go, WithExponentialBackoff of pkg/util/webhook/webhook.go
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Final

from tetrapod.generic.audit.event import Event
from tetrapod.generic.audit.metrics import plugin_error
from tetrapod.generic.dialing import Dialer
from tetrapod.generic.http.headers import JSON_TYPE
from tetrapod.generic.http.request import HeaderList
from tetrapod.generic.proxy.exchange import BackendError
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.webhook.kubeconfig import Target
from tetrapod.generic.webhook.responses import HttpResponse, header, status_error
from tetrapod.machinery.golang.quoting import go_quote

_NAME: Final = "webhook"
_TRIES: Final = 5
_FACTOR: Final = 1.5
_JITTER: Final = 0.2
TIMEOUT: Final = 30.0
"""Seconds for one attempt (upstream: defaultRequestTimeout)."""
_ANSWER_LIMIT: Final = 1 << 20
_HEADERS: Final[HeaderList] = [
    (b"user-agent", b"kube-apiserver"),
    (b"accept", b"application/json, */*"),
    JSON_TYPE,
]


class WebhookBackend:
    """The backend that posts events. It retries four times after any failure, also after malformed responses.

    Args:
        target: the server of the webhook's kubeconfig.
        initial_backoff: seconds before the first retry; each further one waits 1.5 times as long.
        timeout: seconds for one attempt.
        dialer: connects by way of a proxy; None to connect directly.
    """

    def __init__(
        self, target: Target, initial_backoff: float, *, timeout: float = TIMEOUT, dialer: Dialer | None = None
    ) -> None:
        self._target, self._backoff, self._timeout = target, initial_backoff, timeout
        self._pool = BackendPool(dialer=dialer)

    async def process(self, events: Sequence[Event]) -> bool:
        items = b",".join(event.item() for event in events)
        body = b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[' + items + b"]}\n"
        wait, error = self._backoff, ""
        for tried in range(_TRIES):
            if tried:
                await asyncio.sleep(wait * (1 + random.random() * _JITTER))
                wait *= _FACTOR
            error = await self._post(body)
            if not error:
                return True
        plugin_error(_NAME, error, events)
        return False

    async def _post(self, body: bytes) -> str:
        """Send one request, and return the error text, or "" if it succeeded."""
        target = self._target
        try:
            async with asyncio.timeout(self._timeout):
                headers = [*_HEADERS, *target.auth_headers()]
                connection = await self._pool.exchange(
                    target.endpoint, "POST", target.path, headers, body, host=target.host, replay=True
                )
                try:
                    answer = await connection.read(_ANSWER_LIMIT)
                except BaseException:
                    connection.close()
                    raise
        except TimeoutError:
            return (
                f"Post {go_quote(target.url)}: context deadline exceeded "
                "(Client.Timeout exceeded while awaiting headers)"
            )
        except (BackendError, OSError, ValueError) as error:
            return f"Post {go_quote(target.url)}: {error}"
        if 200 <= connection.status <= 206:
            return ""
        return str(status_error(HttpResponse(connection.status, header(connection.headers, b"content-type"), answer)))

    async def close(self) -> None:
        await self._pool.close()
