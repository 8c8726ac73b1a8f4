"""What the front says to the service that a request is passed on to, and what that one tells of its part.

Headers begin as identities do, so that no client's and no other server's passes our front (proxy/headers.py); what they say is believed
from the front proxy only (authentication/requestheader.py). The services behind take the front's word that it is a trace to be told of,
and that the `traceparent` is the front's own.
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.among_services.names import TRACE_SPANS as FOUND
from tetrapod.generic.among_services.packed_headers import packed, take_out
from tetrapod.generic.request import HeaderList, Request, Response
from tetrapod.generic.tracing.report import told
from tetrapod.generic.tracing.spans import Nothing, Span

ASKED: Final = b"x-remote-trace"
STATE: Final = "what the front asks of traces"
"""Where in `Request.state` the authenticator of the front proxy leaves it."""
TELL: Final = "tell"
BELIEVE: Final = "believe"
_LIMIT: Final = 256 * 1024


def asking(step: Span | Nothing) -> HeaderList:
    """Headers for the service behind."""
    return [(ASKED, (TELL if step.trace.detailed else BELIEVE).encode())] if isinstance(step, Span) else []


def target(request: Request, step: Span | Nothing) -> str:
    """What is asked of the service behind: the trace as well, where somebody reads it."""
    query = request.query_string
    if isinstance(step, Span) and step.trace.detailed:
        query = f"{query}&trace=1" if query else "trace=1"
    return f"{request.raw_path}?{query}" if query else request.raw_path


def asks_to_tell(request: Request) -> bool:
    return request.state.get(STATE) == TELL


def vouches(request: Request) -> bool:
    """The `traceparent` is our front's."""
    return request.state.get(STATE) in (TELL, BELIEVE)


def telling(response: Response, root: Span) -> None:
    """Put the spans below `root` into the answer."""
    root.end()
    found = packed(told(root, root.started).get("spans", []), default=str)
    if len(found) <= _LIMIT:
        response.headers.append((FOUND, found))


def graft(response: Response, step: Span | Nothing) -> None:
    """Take what a service has told out of its answer, and put it below the step that called it."""
    for spans in take_out(response, FOUND):
        if isinstance(step, Span):
            step.grafts += spans
