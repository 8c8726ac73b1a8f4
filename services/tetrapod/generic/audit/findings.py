"""What the front asks of the service that a request is passed on to, and what that one answers: findings for the front's events.

Where the four run apart, each request is audited once, at the front, which alone knows who really asked and from where. What the object
was and what admission had to say is found out behind it, and comes back in a header of the answer. Both headers begin as identities do,
so that no client's and no other server's passes our front (proxy/headers.py); only a service behind it answers at all
(`ChainConfig.tells_front`), and only to the front proxy (authentication/requestheader.py).
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.audit.context import AuditContext
from tetrapod.generic.audit.hops import ASKED, FOUND
from tetrapod.generic.audit.policy import LEVEL_NAMES, LEVELS, Auditing, Level
from tetrapod.generic.filters.long_running import is_long_running
from tetrapod.generic.packed_headers import packed, take_out
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
    encoded = packed(found)
    if len(encoded) > _LIMIT:
        del found["requestObject"]
        encoded = packed({**found, "annotations": {**found["annotations"], **_TRUNCATED}})
    return [(FOUND, encoded)] if len(encoded) <= _LIMIT else []


def told(context: AuditContext, request: Request, response: Response) -> None:
    """Take what a service has told out of its answer, and have a look at the object that it answers with."""
    for found in take_out(response, FOUND):
        context.take(found)
    info = request.info
    if info is not None and (info.is_resource_request or info.path.startswith("/api")) and not is_long_running(info):
        context.answer(response)
