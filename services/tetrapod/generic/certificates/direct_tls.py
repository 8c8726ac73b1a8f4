"""`DirectTLS`: an SSLObject whose `read`, `write` and `pending` are OpenSSL's own methods, without Python's wrappers.

The event loop calls them a dozen times for each proxied request.
"""

from __future__ import annotations

import ssl
from typing import Any, Self


class DirectTLS(ssl.SSLObject):
    """An SSLObject without Python's wrapper methods. Set it as `sslobject_class` of an SSLContext."""

    @classmethod
    def _create(cls, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **kwargs: Any) -> Self:
        connection: Self = super()._create(incoming, outgoing, *args, **kwargs)  # type: ignore[misc]
        inner: Any = connection._sslobj  # type: ignore[attr-defined]
        connection.read, connection.write, connection.pending = inner.read, inner.write, inner.pending  # type: ignore[method-assign]
        return connection
