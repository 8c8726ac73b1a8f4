"""`WebhookClient`: sends one POST to a webhook, as client-go's REST client does.

Redirects are followed, Retry-After is honoured, and a stale connection is replaced.
Upstream: k8s.io/apiserver/pkg/util/webhook/client.go; client-go/rest/{request,with_retry}.go; net/http/client.go
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urljoin, urlsplit

from tetrapod.generic.dialing import Dialer
from tetrapod.generic.http.headers import JSON_TYPE
from tetrapod.generic.http.request import HeaderList
from tetrapod.generic.proxy.certificate_metrics import CertificateFailures
from tetrapod.generic.proxy.endpoint import Endpoint
from tetrapod.generic.proxy.exchange import BackendError
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.proxy.resolver import Unresolvable
from tetrapod.generic.proxy.tls import ClientTLS
from tetrapod.generic.scheduling.offload import is_large, offloaded
from tetrapod.generic.webhook.client_config import ClientConfig, Credentials
from tetrapod.generic.webhook.responses import CallFailed, Expected, HttpResponse, decode, header
from tetrapod.generic.webhook.services import ServiceResolver
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object

ANSWER_LIMIT: Final = 8 << 20
"""Bytes that a response may have beyond twice those of the request: more than any storable change of an object
needs.
"""
_MAX_REDIRECTS: Final = 10
_MAX_RETRIES: Final = 10
_CERTIFICATES: Final = CertificateFailures("apiserver_webhooks")
_HEADERS: Final[HeaderList] = [
    (b"user-agent", b"kube-apiserver-admission"),
    (b"accept", b"application/json, */*"),
    JSON_TYPE,
]


@dataclass(frozen=True, slots=True)
class _Target:
    """One request of a chain of redirects.

    Attributes:
        method: the HTTP method.
        url: the whole URL.
        body: the body; b"" for none.
    """

    method: str
    url: str
    body: bytes


class WebhookClient:
    """The client of all webhooks of a process, which share a pool of connections.

    Attributes:
        pool: connections that no egress selector affects.

    Args:
        services: resolves the Services of webhooks.
        pool: the connections; None for a pool of its own. `close` closes either.
        url_dialer: connects to webhooks that have a URL by way of a proxy; None to connect directly.
        service_dialer: the same for webhooks that have a Service.
    """

    def __init__(
        self,
        services: ServiceResolver,
        pool: BackendPool | None = None,
        *,
        url_dialer: Dialer | None = None,
        service_dialer: Dialer | None = None,
    ) -> None:
        self.pool = pool or BackendPool()
        self._url_pool = self.pool if url_dialer is None else BackendPool(dialer=url_dialer)
        self._service_pool = self.pool if service_dialer is None else BackendPool(dialer=service_dialer)
        self._services = services

    async def call(
        self, config: ClientConfig, body: bytes, timeout: float, expected: Expected, *, limit: int = ANSWER_LIMIT
    ) -> Object:
        """POST a review to a webhook and return the decoded response.

        Args:
            config: the webhook.
            body: the JSON of the review.
            timeout: seconds for the whole call, retries included.
            expected: the kind of the response.
            limit: bytes that the response may have beyond twice those of the body.

        Raises:
            CallFailed: the webhook sent no usable response in time.
        """
        url = f"{config.base}{config.path}?timeout={max(math.ceil(timeout), 1)}s"
        first = _Target("POST", url, body)
        try:
            async with asyncio.timeout(timeout):
                answer = await self._persist(config, first, limit + 2 * len(body))
        except TimeoutError:
            raise CallFailed(f"Post {go_quote(url)}: context deadline exceeded") from None
        return await offloaded(is_large(answer.body), decode, answer, expected)

    async def _persist(self, config: ClientConfig, target: _Target, limit: int) -> HttpResponse:
        """Send a request and return the response. As long as it has Retry-After, repeat it, at most ten times.

        Args:
            config: the webhook.
            target: the request.
            limit: the most bytes of the response's body.

        Raises:
            CallFailed: the webhook cannot be reached, redirects too often, or its response is too large.
        """
        for _ in range(_MAX_RETRIES):
            answer, wait = await self._follow(config, target, limit)
            if wait is None:
                return answer
            await asyncio.sleep(wait)
        return (await self._follow(config, target, limit))[0]

    async def _follow(self, config: ClientConfig, target: _Target, limit: int) -> tuple[HttpResponse, float | None]:
        url_text = target.url
        for redirects in range(_MAX_REDIRECTS):
            try:
                status, headers, body = await self._ask(config, target, limit)
            except (BackendError, Unresolvable) as error:
                _CERTIFICATES.count(error)
                raise CallFailed(f"{_verb(target.method)} {go_quote(url_text)}: {error}") from None
            location = header(headers, b"location")
            if status not in (301, 302, 303, 307, 308) or not location:
                return HttpResponse(status, header(headers, b"content-type"), body), _retry_after(
                    status, header(headers, b"retry-after")
                )
            target, url_text = _redirect(target, status, location, url_text)
            if redirects == _MAX_REDIRECTS - 1:
                break
        raise CallFailed(f"{_verb(target.method)} {go_quote(url_text)}: stopped after {_MAX_REDIRECTS} redirects")

    async def _ask(self, config: ClientConfig, target: _Target, limit: int) -> tuple[int, HeaderList, bytes]:
        endpoint, path, host = await self._endpoint(config, target.url)
        headers = _HEADERS if target.body else _HEADERS[:2]
        if config.credentials is not None:
            headers = [*headers, *_auth_headers(config.credentials)]
        connection = await self._pool_of(config).exchange(
            endpoint,
            target.method,
            path,
            headers,
            target.body,
            host=host,
            replay=True,
            shared=config.shares_connection,
        )
        try:
            if connection.status == 101:
                connection.close()
                return 101, connection.headers, b""
            return connection.status, connection.headers, await connection.read(limit)
        except BackendError as error:
            connection.close()
            text = str(error)
            if text.startswith("the answer is larger"):
                raise CallFailed(text) from None
            raise CallFailed(
                f"unexpected error when reading response body. Please retry. Original error: {text}"
            ) from None
        except BaseException:
            connection.close()
            raise

    async def _endpoint(self, config: ClientConfig, url: str) -> tuple[Endpoint, str, str]:
        """Return the endpoint of a URL, the path with the query, and the Host header.

        A URL of the webhook's Service is resolved; others, such as redirects, are used as they are.

        Raises:
            BackendError: the URL is invalid.
            Unresolvable: the Service has no usable address.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https"):
            raise BackendError(f"unsupported protocol scheme {go_quote(parts.scheme)}")
        tls = _tls(config) if parts.scheme == "https" else None
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if config.service is not None and f"{parts.scheme}://{parts.netloc}" == config.base:
            service = config.service
            host, port = await self._services.resolve(service.namespace, service.name, service.port)
            return Endpoint(host, port, replace(_tls(config), server_name=service.host)), path, parts.netloc
        try:
            explicit_port = parts.port
        except ValueError:
            raise BackendError(f"dial tcp: address {parts.netloc.rpartition(':')[2]}: invalid port") from None
        default = 443 if tls is not None else 80
        return (
            Endpoint(parts.hostname or "", default if explicit_port is None else explicit_port, tls),
            path,
            parts.netloc,
        )

    def _pool_of(self, config: ClientConfig) -> BackendPool:
        """Return the pool for a webhook. The Service of this API server itself is always connected directly.

        Upstream: k8s.io/apiserver/pkg/util/webhook/authentication.go, NewDefaultAuthenticationInfoResolverWrapper
        """
        service = config.service
        if service is None:
            return self._url_pool
        is_own = (service.namespace, service.name, service.port) == ("default", "kubernetes", 443)
        return self.pool if is_own else self._service_pool

    async def close(self) -> None:
        for pool in {self.pool, self._url_pool, self._service_pool}:
            await pool.close()


def _tls(config: ClientConfig) -> ClientTLS:
    if (credentials := config.credentials) is None:
        return ClientTLS(ca_data=config.authorities)
    return ClientTLS(ca_data=config.authorities, certificate=credentials.certificate, key=credentials.key)


def _auth_headers(credentials: Credentials) -> HeaderList:
    try:
        return credentials.auth_headers()
    except OSError as error:
        raise BackendError(str(error)) from None


def _verb(method: str) -> str:
    return method.capitalize()


def _redirect(target: _Target, status: int, location: str, url_text: str) -> tuple[_Target, str]:
    """Return the next request of a redirect, and the URL as Go's errors show it: a relative location as it was sent.

    Args:
        target: the redirected request.
        status: the status code of the redirect.
        location: the value of its Location header.
        url_text: the URL of the redirected request as Go's errors show it.

    Raises:
        CallFailed: the location is not a URL.
    """
    try:
        url = urljoin(target.url, location)
        urlsplit(url)
    except ValueError:
        text = f"parse {go_quote(location)}: missing ']' in host"
        raise CallFailed(
            f"{_verb(target.method)} {go_quote(url_text)}: failed to parse Location header {go_quote(location)}: {text}"
        ) from None
    if status in (307, 308):
        return replace(target, url=url), location
    return _Target("GET", url, b""), location


def _retry_after(status: int, value: str) -> float | None:
    if (status == 429 or status >= 500) and value.isascii() and value.isdigit():
        return float(value)
    return None
