"""`/debug/flags`: flags that can be changed while the server runs; there is one, `v`.

Upstream: k8s.io/apiserver/pkg/server/routes/flags.go, and logs.GlogSetter.
"""

from __future__ import annotations

import re
from typing import Final

from tetrapod.generic.logs import set_verbosity
from tetrapod.generic.request import HeaderList, Request, Response
from tetrapod.machinery.field import go_quote

_INDEX: Final = (
    b"<html>\n<head>\n<title>/debug/flags/</title>\n</head>\n<body>\n/debug/flags/<br>\n<br>\nflags:<br>\n<table>\n<tr>v<br>\n"
    b"</table>\n<br>\nfull flags configurable<br>\n</body>\n</html>\n"
)
_PLAIN: Final[HeaderList] = [(b"content-type", b"text/plain")]
_REFUSED: Final[HeaderList] = [*_PLAIN, (b"x-content-type-options", b"nosniff")]
_LIMIT: Final = 1 << 20
_LARGEST: Final = 2**31 - 1


async def index(request: Request) -> Response:
    return Response(200, [(b"content-type", b"text/html; charset=utf-8")], _INDEX)


async def verbosity(request: Request) -> Response:
    """`PUT /debug/flags/v` with a number as its body."""
    if request.method != "PUT":
        return Response(406, list(_REFUSED), b"unsupported http method\n")
    text = (await request.body.read(_LIMIT)).decode("utf-8", "replace")
    if re.fullmatch("[0-9]+", text) is None or int(text) > _LARGEST:
        return Response(400, list(_REFUSED), f"{go_quote(text)} is no log level\n".encode())
    set_verbosity(int(text))
    return Response(200, list(_PLAIN), f"successfully set klog.logging.verbosity to {text}".encode())
