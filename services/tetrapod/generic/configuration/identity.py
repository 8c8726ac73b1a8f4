"""The identity of this API server, as metrics and leases know it (upstream: pkg/controlplane/apiserver, APIServerIdentity)."""

from __future__ import annotations

import base64
import hashlib
import socket
from functools import cache


@cache
def apiserver_id() -> str:
    digest = hashlib.sha256(socket.gethostname().encode()).digest()[:16]
    return "apiserver-" + base64.b32encode(digest).decode().rstrip("=").lower()


def hashed(text: str) -> str:
    """As labels of metrics show a text that may be long or private: `sha256:…`, "" for nothing."""
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()}" if text else ""
