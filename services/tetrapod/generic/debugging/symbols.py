"""What lives at an address, as `/debug/pprof/symbol` tells it: `0x7f…` of a log line or of a stack is an object of Python's.

Named are functions, classes, coroutines and tasks; of others their type. Contents are nobody's business. Upstream: net/http/pprof (Symbol),
where an address is a program counter.
"""

from __future__ import annotations

import asyncio
from types import BuiltinFunctionType, CoroutineType, FunctionType, GeneratorType, MethodType
from typing import Final

from tetrapod.generic.debugging.objects import live_objects
from tetrapod.generic.request import Request, Response

_BODY_LIMIT: Final = 64 * 1024
_MOST: Final = 1000
_NAMED: Final = (type, FunctionType, MethodType, BuiltinFunctionType)


async def handle(request: Request) -> Response:
    """Addresses are joined by `+`, in the query or in the body of a POST."""
    text = (await request.body.read(_BODY_LIMIT)).decode("latin-1") if request.method == "POST" else request.query_string
    wanted = [found for word in text.split("+")[:_MOST] if (found := _address(word))]
    names = await asyncio.to_thread(_names, frozenset(wanted)) if wanted else {}
    lines = ["num_symbols: 1\n", *(f"{address:#x} {names[address]}\n" for address in wanted if address in names)]
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"x-content-type-options", b"nosniff")]
    return Response(200, headers, "".join(lines).encode())


def _address(word: str) -> int:
    """0 where it is none."""
    try:
        return int(word.strip()[:20], 0)
    except ValueError:
        return 0


def _names(wanted: frozenset[int]) -> dict[int, str]:
    return {id(found): _name(found) for found in live_objects() if id(found) in wanted}


def _name(found: object) -> str:
    if isinstance(found, asyncio.Task):
        return f"task {found.get_name()} of {_name(found.get_coro())}"
    if isinstance(found, _NAMED):
        return f"{getattr(found, '__module__', None) or 'builtins'}.{found.__qualname__}"
    if isinstance(found, CoroutineType | GeneratorType):
        return f"{type(found).__name__} {found.__qualname__}"
    return f"{type(found).__module__}.{type(found).__qualname__}"
