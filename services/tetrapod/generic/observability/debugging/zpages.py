"""`/statusz` and `/flagz`: version, uptime and flags of the server, as text or as a versioned object.

Upstream: k8s.io/component-base/zpages. JSON, YAML and CBOR must be requested by their full media type
(`application/json;g=config.k8s.io; v=v1beta1;as=Statusz`). Otherwise the response is text, whose format is not stable.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from tetrapod.generic.configuration.effective_version import effective_version
from tetrapod.generic.configuration.version import KUBERNETES, version_info
from tetrapod.generic.http.headers import TEXT_TYPE
from tetrapod.generic.http.negotiation.accept import JSON, YAML, Offer, clause_fits, parse_accept, with_cbor
from tetrapod.generic.http.negotiation.documents import encode_document, write_status
from tetrapod.generic.http.negotiation.media_types import wants_pretty
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.generic.metrics.registry import STARTED
from tetrapod.generic.observability.request_metrics import PAGE
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError, not_acceptable

GROUP: Final = "config.k8s.io"
COMPONENT: Final = "apiserver"
_TEXT: Final = "text/plain"
_VERSIONS: Final = ("v1beta1", "v1alpha1")
_HEADING: Final = (
    "\n"
    "{component} {page}\n"
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only.\n"
)
_OFFER: Final = Offer(table=False, partial=False, messages=False, server_version="")
"""The media types of error responses, which are the default ones without Tables, partial metadata and protobuf."""


def _negotiate(request: Request, kind: str) -> tuple[str, str]:
    """Return the media type of the response, and the version of `kind` that the client requests ("" for plain text).

    Raises:
        StatusError: 406, no offered media type is accepted.
    """
    media_types = with_cbor((JSON, YAML, _TEXT))
    for clause in parse_accept(request.header(b"accept") or "*/*"):
        parameters = {key: value for key, value in clause.parameters if key in ("as", "g", "v")}
        for media_type in media_types:
            if not clause.takes(media_type) or not clause_fits(clause, media_type, streams=False):
                continue
            if media_type == _TEXT:
                if not parameters:
                    return media_type, ""
            elif parameters.get("as") == kind and parameters.get("g") == GROUP and parameters.get("v") in _VERSIONS:
                return media_type, parameters["v"]
    raise not_acceptable(f"only the following media types are accepted: {', '.join(media_types)}")


def _answer(request: Request, kind: str, content: Object, text: Callable[[], str], component: str) -> Response:
    request.state[PAGE] = "", "", kind.lower()
    try:
        media_type, version = _negotiate(request, kind)
    except StatusError as error:
        return write_status(request, error, _OFFER)
    if not version:
        heading = _HEADING.format(component=component, page=kind.lower())
        return Response(200, [TEXT_TYPE], (heading + text()).encode())
    request.state[PAGE] = GROUP, version, kind.lower()
    if version != _VERSIONS[0]:
        request.annotations["k8s.io/deprecated"] = "true"
        request.warnings.append(
            f"This version of the {kind.lower()} endpoint is deprecated. Please use a newer version."
        )
    document = {"kind": kind, "apiVersion": f"{GROUP}/{version}", "metadata": {"name": component}, **content}
    full_type = f"{media_type};g={GROUP};v={version};as={kind}"
    return Response(
        200,
        [(b"content-type", full_type.encode())],
        encode_document(document, media_type, pretty=wants_pretty(request)),
    )


async def _audited(request: Request, response: Response) -> Response:
    if request.audit is not None:
        await request.audit.record_response(response)
    return response


def statusz(paths: Callable[[], Iterable[str]], component: str = COMPONENT) -> Handler:
    """Return the handler of /statusz.

    Args:
        paths: returns the paths that `/` lists; those with one segment are shown.
        component: the name of the program.
    """

    async def handle(request: Request) -> Response:
        content: Object = {
            "startTime": datetime.fromtimestamp(int(STARTED), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "uptimeSeconds": int(time.time() - STARTED),
            "goVersion": version_info()["goVersion"],
            "binaryVersion": KUBERNETES,
            "emulationVersion": "{}.{}".format(*effective_version().emulated),
            "paths": sorted(path for path in paths() if path.count("/") == 1 and path not in ("/", "/api", "/apis")),
        }
        return await _audited(request, _answer(request, "Statusz", content, lambda: _status_text(content), component))

    return handle


def _status_text(content: Object) -> str:
    hours, rest = divmod(content["uptimeSeconds"], 3600)
    return (
        f"\nStarted: {datetime.fromtimestamp(int(STARTED), UTC).strftime('%a %b %e %H:%M:%S UTC %Y')}\n"
        f"Up: {hours} hr {rest // 60:02d} min {rest % 60:02d} sec\n"
        f"Go version: {content['goVersion']}\n"
        f"Binary version: {content['binaryVersion']}\n"
        f"Emulation version: {content['emulationVersion']}\n"
        f"Paths: {' '.join(content['paths'])}\n"
    )


def flagz(flags: Callable[[], Mapping[str, str]], component: str = COMPONENT) -> Handler:
    """Return the handler of /flagz.

    Args:
        flags: returns the values of the command-line flags by name.
        component: the name of the program.
    """

    async def handle(request: Request) -> Response:
        values = dict(sorted(flags().items()))
        text = "".join(f"{name}={value}\n" for name, value in values.items())
        return await _audited(request, _answer(request, "Flagz", {"flags": values}, lambda: text, component))

    return handle
