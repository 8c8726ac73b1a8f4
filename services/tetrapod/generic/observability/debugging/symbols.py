"""`/debug/pprof/symbol`: the Python object at an address, such as `0x7f…` in a log line or a stack.

Functions, classes, coroutines and tasks are shown by name, other objects by type only, because their content may be
confidential. Upstream: net/http/pprof (Symbol), where an address is a program counter.
"""

from __future__ import annotations

import asyncio
import gc
from types import BuiltinFunctionType, CoroutineType, FunctionType, GeneratorType, MethodType
from typing import Final

from tetrapod.generic.http.headers import NOSNIFF, TEXT_TYPE
from tetrapod.generic.http.request import Request, Response

_BODY_LIMIT: Final = 64 * 1024
_MOST: Final = 1000
_NAMED: Final = (type, FunctionType, MethodType, BuiltinFunctionType)


async def handle(request: Request) -> Response:
    """Serve the objects at addresses, which are joined by `+` in the query or in the body of a POST, as text.

    Addresses of no object are left out.
    """
    text = (
        (await request.body.read(_BODY_LIMIT)).decode("latin-1") if request.method == "POST" else request.query_string
    )
    wanted = [parsed for word in text.split("+")[:_MOST] if (parsed := _address(word))]
    names = await asyncio.to_thread(_names, frozenset(wanted)) if wanted else {}
    lines = ["num_symbols: 1\n", *(f"{address:#x} {names[address]}\n" for address in wanted if address in names)]
    headers = [TEXT_TYPE, NOSNIFF]
    return Response(200, headers, "".join(lines).encode())


def _address(word: str) -> int:
    """Return an address, in Python's notation such as `0x7f00` or `123`, as a number; 0 if it is malformed."""
    try:
        return int(word.strip()[:20], 0)
    except ValueError:
        return 0


def _names(wanted: frozenset[int]) -> dict[int, str]:
    return {id(obj): _name(obj) for obj in live_objects() if id(obj) in wanted}


def _name(obj: object) -> str:
    if isinstance(obj, asyncio.Task):
        return f"task {obj.get_name()} of {_name(obj.get_coro())}"
    if isinstance(obj, _NAMED):
        return f"{getattr(obj, '__module__', None) or 'builtins'}.{obj.__qualname__}"
    if isinstance(obj, CoroutineType | GeneratorType):
        return f"{type(obj).__name__} {obj.__qualname__}"
    return f"{type(obj).__module__}.{type(obj).__qualname__}"


def live_objects() -> list[object]:
    """Return all objects that the garbage collector tracks, including those excluded from collection by gc.freeze.

    Garbage is collected first. Afterwards all present objects are excluded from collection (gc.freeze), as they are
    after the startup of the server. If garbage were frozen, it would never be collected.
    """
    gc.unfreeze()
    gc.collect()
    objects = gc.get_objects()
    gc.freeze()
    return objects
