"""`CLOSED_TRANSPORT`: a transport that has been closed, in place of the one that a lost connection had.

A TLS transport of uvloop keeps the methods of its protocol after `connection_lost`. A protocol that kept its transport
in turn would form a reference cycle, so that every closed connection waited for the cyclic garbage collector.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final


class _ClosedTransport(asyncio.Transport):
    def is_closing(self) -> bool:
        return True

    def close(self) -> None: ...

    def abort(self) -> None: ...

    def write(self, data: Any) -> None: ...

    def writelines(self, list_of_data: Iterable[Any]) -> None: ...

    def can_write_eof(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


CLOSED_TRANSPORT: Final = _ClosedTransport()
