"""`forward`: pass a request on to a backend and its answer back, as kube-aggregator's UpgradeAwareHandler does.

Streams go both ways without being collected; an answer that is already here whole becomes a plain `Response`; a 101 becomes a splice.
Upstream: kube-aggregator/pkg/apiserver/handler_proxy.go, k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from tetrapod.generic.http.head import render
from tetrapod.generic.proxy.connection import BackendConnection, BackendError
from tetrapod.generic.proxy.endpoint import Endpoint
from tetrapod.generic.proxy.headers import STRANGERS, Unsendable, answer_headers, answer_trailers, forwarded_headers, upgrade_of
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.proxy.splice import Splice
from tetrapod.generic.request import (
    AnswerBroken,
    BodyReader,
    HeaderList,
    Hijacked,
    Request,
    Response,
    StreamResponse,
    StreamWriter,
    UpgradeResponse,
)

log = logging.getLogger(__name__)

_SWITCHED: Final = 'backend tried to switch protocol "{}" when "" was requested\n'
_REDIRECTED: Final = "the backend attempted to redirect this request, which is not permitted"
WHOLE: Final = 64 * 1024
"""Bodies up to this size are sent with the head, once they are here: one write, no task, and a slow client holds no backend."""


class NotUpgraded(BackendError):
    """The backend answered an upgrade with something else that is no error."""


async def forward(
    pool: BackendPool,
    endpoint: Endpoint,
    request: Request,
    *,
    target: str = "",
    headers: HeaderList | None = None,
    host: str = "",
    redirects: bool = True,
    only_upgraded: bool = False,
    dropped: Collection[bytes] = STRANGERS,
) -> Response:
    """The backend's answer. `target` (path and query) is the request's own, `headers` those of `forwarded_headers`, unless given; so is
    `host`, that of the Host header, the endpoint's. Without `redirects` such an answer is refused: who follows it takes his token along.
    `only_upgraded`: who asks for an upgrade gets it, or an error of the backend's. `dropped`: of its headers (FRONTS of a service of ours).

    Raises BackendError.
    """
    request.cancel_when_gone = True
    if not target:
        target = f"{request.raw_path}?{request.query_string}" if request.query_string else request.raw_path
    if headers is None:
        try:
            headers = forwarded_headers(request.headers, request.user, request.remote, request.audit_id)
        except Unsendable as error:
            raise BackendError(str(error), untouched=True) from None
    upgrade = upgrade_of(request.headers) if request.upgrade is not None else b""
    length = _length(request.headers)
    sent: BodyReader | bytes = request.body
    if length is not None and length <= WHOLE:
        sent = await request.body.read(length) if length else b""
    connection = await pool.exchange(
        endpoint,
        request.method,
        target,
        headers,
        sent,
        host=host,
        upgrade=upgrade,
        length=length,
    )
    if upgrade and only_upgraded and connection.status != 101 and connection.status < 400:
        connection.close()
        raise NotUpgraded(f"invalid upgrade response: status code {connection.status}")
    if connection.status == 101:
        return _switch(connection) if upgrade else _refused(connection, 503, _SWITCHED.format(_switched_to(connection.headers)))
    if not redirects and 300 <= connection.status <= 399 and any(name == b"location" and value for name, value in connection.headers):
        return _refused(connection, 502, _REDIRECTED)
    back = answer_headers(connection.headers, dropped)
    trailers, passed = connection.trailers, HeaderList()
    body = connection.take()
    if body is not None and not trailers:
        return Response(connection.status, back, body)

    async def run(writer: StreamWriter) -> None:
        try:
            if body is None:
                await connection.pipe(writer)
            else:
                writer.write(body)
        except BackendError as error:
            log.warning("backend %s broke off its answer to %s: %s", endpoint.authority, request.raw_path, error)
            raise AnswerBroken(str(error)) from error
        finally:
            if body is None and not connection.complete:
                connection.close()
        passed.extend(answer_trailers(trailers))

    stream = StreamResponse(connection.status, back, run, endless=request.info is not None and request.info.verb == "watch")
    stream.trailers = passed
    return stream


def _refused(connection: BackendConnection, code: int, text: str) -> Response:
    connection.close()
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    if code == 503:
        headers.append((b"x-content-type-options", b"nosniff"))  # as Go's http.Error does
    return Response(code, headers, text.encode())


def _switched_to(headers: HeaderList) -> str:
    return next((value.decode("latin-1") for name, value in headers if name == b"upgrade"), "")


def _length(headers: HeaderList) -> int | None:
    """Bytes of the request's body; None where only its end will tell."""
    length: int | None = 0
    for name, value in headers:
        if name == b"content-length":
            return int(value)
        if name == b"transfer-encoding":
            length = None
    return length


def _switch(connection: BackendConnection) -> UpgradeResponse:
    async def run(client: Hijacked) -> None:
        client.transport.write(render(101, b"", connection.headers, b""))
        splice = Splice()
        connection.detach(splice.backend)
        client.take_over(splice.client)
        await splice.run()

    return UpgradeResponse(run)
