"""`ReviewClient`: posts a TokenReview or SubjectAccessReview to the server of a kubeconfig, with retries.

Retry-After headers are honoured, as by client-go's REST client.
Upstream: k8s.io/apiserver/pkg/util/webhook/webhook.go, GenericWebhook, WithExponentialBackoff, DefaultShouldRetry
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import Final

import orjson

from tetrapod.generic.http.headers import JSON_TYPE
from tetrapod.generic.http.request import HeaderList
from tetrapod.generic.proxy.exchange import BackendError
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.webhook.kubeconfig import Target
from tetrapod.generic.webhook.responses import CallFailed, Expected, HttpResponse, decode, header
from tetrapod.machinery.golang.durations import format_duration
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object

TIMEOUT: Final = 30.0
_MAX_WAITS: Final = 10
_ANSWER_LIMIT: Final = 3 << 20
_TIMED_OUT: Final = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
_HEADERS: Final[HeaderList] = [
    (b"user-agent", b"kube-apiserver"),
    (b"accept", b"application/json, */*"),
    JSON_TYPE,
]


@dataclass(frozen=True, slots=True)
class Backoff:
    """The retry policy of a webhook.

    Attributes:
        initial: the seconds before the second try.
        factor: by which the wait grows with each further try.
        jitter: the largest fraction of the wait that is added at random.
        tries: the most tries.
    """

    initial: float = 0.5
    factor: float = 1.5
    jitter: float = 0.2
    tries: int = 5


class ReviewFailed(Exception):
    """The error of a review without a usable response. Its text is upstream's.

    Attributes:
        code: the HTTP status; 0 without a response.
        again: whether a retry may succeed.
        result: `timeout` or `error`, for metrics.
    """

    def __init__(self, text: str, code: int = 0, *, timed_out: bool = False, again: bool = False) -> None:
        super().__init__(text)
        self.code, self.again = code, again
        self.result = "timeout" if timed_out or code == 504 else "error"


class ReviewClient:
    """The client of one webhook that answers reviews.

    Args:
        target: the webhook.
        pool: the connections.
        expected: the kind of the response.
        timeout: the limit of one request in seconds.
    """

    def __init__(self, target: Target, pool: BackendPool, expected: Expected, *, timeout: float = TIMEOUT) -> None:
        self._target, self._pool, self._expected, self._timeout = target, pool, expected, timeout
        mark = "&" if "?" in target.path else "?"
        query = f"{mark}timeout={format_duration(timeout)}"
        self._path, self._shown = target.path + query, target.url + query

    async def once(self, review: Object) -> Object:
        """Send a review and return the decoded response. Repeat only while the webhook answers with Retry-After.

        Raises:
            ReviewFailed: the webhook sent no usable response.
        """
        body = orjson.dumps(review)
        for _ in range(_MAX_WAITS):
            status, headers, answer = await self._post(body)
            wait = header(headers, b"retry-after")
            if not (wait.isascii() and wait.isdigit() and (status == 429 or status >= 500)):
                break
            await asyncio.sleep(float(wait))
        try:
            return decode(HttpResponse(status, header(headers, b"content-type"), answer), self._expected)
        except CallFailed as error:
            again = status in (429, 504) or (status >= 500 and status != 503)
            raise ReviewFailed(str(error), status, again=again) from None

    async def _post(self, body: bytes) -> tuple[int, HeaderList, bytes]:
        target, prefix = self._target, f"Post {go_quote(self._shown)}"
        try:
            async with asyncio.timeout(self._timeout):
                headers = [*_HEADERS, *target.auth_headers()]
                connection = await self._pool.exchange(
                    target.endpoint, "POST", self._path, headers, body, host=target.host, replay=True
                )
                try:
                    return connection.status, connection.headers, await connection.read(_ANSWER_LIMIT)
                except BaseException:
                    connection.close()
                    raise
        except TimeoutError:
            raise ReviewFailed(f"{prefix}: {_TIMED_OUT}", timed_out=True) from None
        except (BackendError, OSError, ValueError) as error:
            raise ReviewFailed(f"{prefix}: {error}", again="connection reset" in str(error)) from None


async def pause(backoff: Backoff, tried: int) -> None:
    """Sleep before the next attempt to send a review, for a time that grows with the attempts made so far (`tried`)."""
    wait = backoff.initial * backoff.factor ** (tried - 1)
    await asyncio.sleep(wait * (1 + random.random() * backoff.jitter))


async def create(client: ReviewClient, review: Object, backoff: Backoff) -> Object:
    """Send a review and return the decoded response, with retries for errors that may be transient.

    `backoff` limits the tries and gives the time between them.

    Raises:
        ReviewFailed: the last try failed.
    """
    tried = 0
    while True:
        tried += 1
        try:
            return await client.once(review)
        except ReviewFailed as error:
            if not error.again or tried >= backoff.tries:
                raise
        await pause(backoff, tried)
