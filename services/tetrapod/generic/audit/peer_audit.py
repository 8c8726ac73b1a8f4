"""The exchange of audit data between the front proxy (the aggregator) and the service that a request is proxied to.

If the services are separate processes, each request is audited once: by the aggregator, which alone knows the
original user and address. Data about the object and from admission exists only in the service; it is returned in a
response header. Both headers share the prefix of the identity headers, so the aggregator removes them from requests
of clients and responses of other servers (proxy/headers.py). Only a service behind an aggregator returns data
(`ChainConfig.behind_aggregator`), and only to the front proxy (authentication/requestheader.py).
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.audit.context import AuditContext
from tetrapod.generic.audit.policy import LEVELS, Auditing
from tetrapod.generic.http.peers import (
    AUDIT_OMIT_MANAGED_FIELDS,
    AUDIT_REQUEST_HEADER,
    AUDIT_RESPONSE_HEADER,
    pack_header,
    take_out_headers,
)
from tetrapod.generic.http.request import Auditor, HeaderList, Request, Response
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.machinery.requestinfo import is_long_running

_LIMIT: Final = 512 * 1024
"""The longest header in bytes. A larger object (after compression) is left out of the event, which is annotated as
truncated.
"""
_LARGE: Final = 4096
"""Bytes of a header from which on it is unpacked in a thread: repetitive objects are compressed to a fraction."""
_TRUNCATED: Final = {"audit.k8s.io/truncated": "true"}


def request_header(audit: Auditor) -> HeaderList:
    """Return the header that requests audit data from the peer service to which the aggregator proxies a request.

    It is returned as a list of one header.
    """
    return [(AUDIT_REQUEST_HEADER, audit.requested_level().encode())]


def parse_request_header(text: str) -> Auditing | None:
    """Return the audit level and options that the value of the request header asks for, or None if it is malformed."""
    level = LEVELS.get(text.removesuffix(AUDIT_OMIT_MANAGED_FIELDS))
    return None if level is None else Auditing(level, omit_managed_fields=text.endswith(AUDIT_OMIT_MANAGED_FIELDS))


async def response_header(context: AuditContext) -> HeaderList:
    """Return the audit data of `context` as a header for the response to the aggregator, in a list of one header.

    If the encoded data exceeds 512 KiB, the request object is left out, and an annotation says so. If the rest
    exceeds 512 KiB too, the list is empty.
    """
    data = context.peer_data()
    large = context.large
    encoded = await offloaded(large, pack_header, data)
    if len(encoded) > _LIMIT:
        data.pop("requestObject", None)
        encoded = pack_header({**data, "annotations": {**data["annotations"], **_TRUNCATED}})
    return [(AUDIT_RESPONSE_HEADER, encoded)] if len(encoded) <= _LIMIT else []


async def take_response(audit: Auditor, request: Request, response: Response) -> None:
    """Record the audit data of a proxied request, which the peer service returned with its response.

    The header with the data is removed from the response, and its content passed to `audit.add_peer_data`. Then the
    object in the response is recorded, but only for API paths, and not for long-running requests.

    Args:
        audit: the audit context of the request, which receives the data.
        request: the request.
        response: the response of the peer service; its headers are modified.
    """
    size = sum(len(value) for name, value in response.headers if name == AUDIT_RESPONSE_HEADER)
    for data in await offloaded(size >= _LARGE, take_out_headers, response, AUDIT_RESPONSE_HEADER):
        await offloaded(size >= _LARGE, audit.add_peer_data, data)
    info = request.info
    if info is not None and (info.is_resource_request or info.path.startswith("/api")) and not is_long_running(info):
        await audit.record_response(response)
