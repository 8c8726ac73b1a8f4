"""What the front asks of the service that a request is passed on to, and what that one answers: findings for the front's events.

Where the four run apart, each request is audited once, at the front, which alone knows who really asked and from where. What the object
was and what admission had to say is found out behind it, and comes back in a header of the answer. Both headers begin as identities do,
so that no client's and no other server's passes our front (proxy/headers.py); only a service behind it answers at all
(`ChainConfig.tells_front`), and only to the front proxy (authentication/requestheader.py).
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.among_services.audit_headers import ASKED, FOUND, OMITTING
from tetrapod.generic.among_services.packed_headers import packed, take_out
from tetrapod.generic.audit.context import AuditContext
from tetrapod.generic.audit.policy import LEVELS, Auditing
from tetrapod.generic.request import Auditor, HeaderList, Request, Response
from tetrapod.machinery.requestinfo import is_long_running

_LIMIT: Final = 512 * 1024
"""Bytes of a header; an object that is larger even when it is compressed is left out of the event, which says so."""
_TRUNCATED: Final = {"audit.k8s.io/truncated": "true"}


def asking(audit: Auditor) -> HeaderList:
    return [(ASKED, audit.asks().encode())]


def asked(text: str) -> Auditing | None:
    """None where it cannot be understood."""
    level = LEVELS.get(text.removesuffix(OMITTING))
    return None if level is None else Auditing(level, omit_managed_fields=text.endswith(OMITTING))


def telling(context: AuditContext) -> HeaderList:
    """What was found, in a header if it is not too large."""
    found = context.findings()
    encoded = packed(found)
    if len(encoded) > _LIMIT:
        del found["requestObject"]
        encoded = packed({**found, "annotations": {**found["annotations"], **_TRUNCATED}})
    return [(FOUND, encoded)] if len(encoded) <= _LIMIT else []


def told(audit: Auditor, request: Request, response: Response) -> None:
    """Take what a service has told out of its answer, and have a look at the object that it answers with."""
    for found in take_out(response, FOUND):
        audit.take(found)
    info = request.info
    if info is not None and (info.is_resource_request or info.path.startswith("/api")) and not is_long_running(info):
        audit.answer(response)
