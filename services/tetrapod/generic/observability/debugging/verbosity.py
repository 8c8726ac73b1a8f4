"""`/debug/flags`: the flags that can be changed at run time. There is only `v`.

Upstream: k8s.io/apiserver/pkg/server/routes/flags.go; logs.GlogSetter
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.http.headers import NOSNIFF
from tetrapod.generic.http.request import HeaderList, Request, Response
from tetrapod.generic.observability.logs import set_verbosity
from tetrapod.machinery.golang.integers import parse_uint
from tetrapod.machinery.golang.quoting import go_quote

_INDEX: Final = (
    b"<html>\n<head>\n<title>/debug/flags/</title>\n</head>\n<body>\n/debug/flags/<br>\n<br>\nflags:<br>\n<table>\n<tr>v<br>\n"
    b"</table>\n<br>\nfull flags configurable<br>\n</body>\n</html>\n"
)
_PLAIN: Final[HeaderList] = [(b"content-type", b"text/plain"), NOSNIFF]
_LIMIT: Final = 1 << 20
_LARGEST: Final = 2**31 - 1


async def index(request: Request) -> Response:
    """Serve the index page, `/debug/flags`."""
    return Response(200, [(b"content-type", b"text/html; charset=utf-8")], _INDEX)


async def verbosity(request: Request) -> Response:
    """Serve `PUT /debug/flags/v`: set the log verbosity to the number in the body.

    Respond with 400 if the body is not a valid verbosity, and with 406 to other methods.
    """
    if request.method != "PUT":
        return _plain(406, "unsupported http method")
    text = (await request.body.read(_LIMIT)).decode("utf-8", "replace")
    try:
        level = parse_uint(text, 32)
        if level > _LARGEST:
            raise ValueError(
                f"failed set klog.logging.verbosity {text}: strconv.ParseInt: parsing {go_quote(text)}: value out of "
                "range"
            )
    except ValueError as error:
        return _plain(400, str(error))
    set_verbosity(level)
    return _plain(200, f"successfully set klog.logging.verbosity to {text}")


def _plain(status: int, text: str) -> Response:
    return Response(status, list(_PLAIN), f"{text}\n".encode())
