"""`Failure` and `result_of`: the content of an exception as a value, for results that several callers share.

An exception object must never be kept and raised again. Each raise adds to its `__traceback__`, and the traceback
references every frame that the exception passed through, including the request: a cached exception leaks one request
per use. An exception in a local variable, or in an attribute of an object that a frame references, forms a reference
cycle, which only the cyclic garbage collector can free. `tests/unit/test_exceptions_are_not_kept.py` rejects both.
"""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

E = TypeVar("E", bound=BaseException)
T = TypeVar("T")


class Failure(Generic[E]):
    """The type, arguments and attributes of an exception, without its traceback, cause and context.

    Args:
        error: the exception, which is not kept.
    """

    __slots__ = ("_arguments", "_attributes", "_kind")

    def __init__(self, error: E) -> None:
        self._kind = type(error)
        self._arguments = error.args
        self._attributes = _copied(vars(error))

    def error(self) -> E:
        """Return a new exception of the same type, with the same arguments and attributes.

        The caller may raise and modify it.
        """
        error = self._kind.__new__(self._kind, *self._arguments)
        vars(error).update(_copied(self._attributes))
        return error

    def __str__(self) -> str:
        return str(self.error())


async def result_of(work: asyncio.Future[T]) -> T:
    """Wait for a future that several callers share, and return its result.

    Cancelling one caller cancels neither the future nor the other callers.

    Args:
        work: the future. It goes on, and its exception is not logged, if all callers are cancelled.

    Raises:
        BaseException: the exception of the future, as a new object for each caller; also `CancelledError` if the future
            was cancelled.
    """
    if not work.done():
        try:
            await asyncio.wait((work,))
        except asyncio.CancelledError:
            work.add_done_callback(_retrieve)
            raise
    if work.cancelled():
        raise asyncio.CancelledError
    error = work.exception()
    if error is None:
        return work.result()
    failure, error = Failure(error), None
    raise failure.error()


def _retrieve(work: asyncio.Future[T]) -> None:
    """Retrieve the exception of a future that no caller waits for any more, so that asyncio does not log it."""
    if not work.cancelled():
        work.exception()


def _copied(attributes: dict[str, object]) -> dict[str, object]:
    """Return a copy of an exception's attributes, with lists copied, so that exceptions do not share headers."""
    return {name: list(value) if isinstance(value, list) else value for name, value in attributes.items()}
