"""`DirectTLS`: an SSLObject whose `read`, `write` and `pending` are OpenSSL's own, without Python's methods around them.

The event loop calls them a dozen times for a request that is passed on.
"""

from __future__ import annotations

import ssl
from typing import Any, Self


class DirectTLS(ssl.SSLObject):
    """For `SSLContext.sslobject_class`."""

    @classmethod
    def _create(cls, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **kwargs: Any) -> Self:
        made: Self = super()._create(incoming, outgoing, *args, **kwargs)  # type: ignore[misc]
        inner: Any = made._sslobj  # type: ignore[attr-defined]
        made.read, made.write, made.pending = inner.read, inner.write, inner.pending  # type: ignore[method-assign]
        return made
