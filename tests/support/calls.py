"""Requests to a handler without a socket, as its filters would hand them on, and the answers."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from tetrapod.generic.http.request import BytesBody, Request, Response
from tetrapod.machinery import requestinfo
from tetrapod.machinery.user import UserInfo


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes
    warnings: list[str]

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


def request_of(method: str, target: str, body: Any, user: UserInfo, **headers: str) -> Request:
    """Build a request.

    A body other than bytes is encoded as JSON; header names are given with underscores for dashes.
    """
    path, _, query = target.partition("?")
    data = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
    given = [
        (name.replace("_", "-").encode(), value.encode()) for name, value in {"user_agent": "test/1", **headers}.items()
    ]
    request = Request(method, path, query_string=query, headers=given, body=BytesBody(data), user=user)
    request.info = requestinfo.parse(method, path, query)
    return request


def answer_of(request: Request, response: Response, body: bytes) -> Answer:
    return Answer(
        response.status, {name.decode(): value.decode() for name, value in response.headers}, body, request.warnings
    )
