"""What the front asks of the service that a request is passed on to, and what that one answers: findings for the front's events.

Where the four run apart, each request is audited once, at the front, which alone knows who really asked and from where. What the object
was and what admission had to say is found out behind it, and comes back in a header of the answer. Both headers begin as identities do,
so that no client's and no other server's passes our front (proxy/headers.py); only a service behind it answers at all
(`ChainConfig.tells_front`), and only to the front proxy (authentication/requestheader.py).
"""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Final

import orjson

from tetrapod.generic.audit.context import AuditContext
from tetrapod.generic.audit.hops import ASKED, FOUND
from tetrapod.generic.audit.policy import LEVEL_NAMES, LEVELS, Auditing, Level
from tetrapod.generic.filters.long_running import is_long_running
from tetrapod.generic.request import HeaderList, Request, Response

_OMITTING: Final = "; omit-managed-fields"
_LIMIT: Final = 512 * 1024
"""Bytes of a header; an object that is larger even when it is compressed is left out of the event, which says so."""
_TRUNCATED: Final = {"audit.k8s.io/truncated": "true"}


def asking(context: AuditContext) -> HeaderList:
    """The answer itself the front sees, so no more than level Request is asked for."""
    level = LEVEL_NAMES[min(context.level, Level.REQUEST)]
    return [(ASKED, (level + (_OMITTING if context.auditing.omit_managed_fields else "")).encode())]


def asked(text: str) -> Auditing | None:
    level = LEVELS.get(text.removesuffix(_OMITTING))
    return None if level is None else Auditing(level, omit_managed_fields=text.endswith(_OMITTING))


def telling(context: AuditContext) -> HeaderList:
    found = context.findings()
    encoded = _encoded(found)
    if len(encoded) > _LIMIT:
        del found["requestObject"]
        encoded = _encoded({**found, "annotations": {**found["annotations"], **_TRUNCATED}})
    return [(FOUND, encoded)] if len(encoded) <= _LIMIT else []


def _encoded(found: dict[str, object]) -> bytes:
    return base64.b64encode(zlib.compress(orjson.dumps(found), 1))


def told(context: AuditContext, request: Request, response: Response) -> None:
    """Take what a service has told out of its answer, and have a look at the object that it answers with."""
    for name, value in response.headers:
        if name == FOUND:
            try:
                context.take(orjson.loads(zlib.decompress(base64.b64decode(value))))
            except (binascii.Error, zlib.error, orjson.JSONDecodeError):
                continue
    response.headers = [header for header in response.headers if header[0] != FOUND]
    info = request.info
    if info is not None and (info.is_resource_request or info.path.startswith("/api")) and not is_long_running(info):
        context.answer(response)
