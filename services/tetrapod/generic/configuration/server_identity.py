"""The identity of this API server in metrics and leases (upstream: pkg/controlplane/apiserver, APIServerIdentity)."""

from __future__ import annotations

import base64
import hashlib
import socket
from functools import cache


@cache
def apiserver_id() -> str:
    """Return `apiserver-` and a hash of the host name."""
    digest = hashlib.sha256(socket.gethostname().encode()).digest()[:16]
    return "apiserver-" + base64.b32encode(digest).decode().rstrip("=").lower()


def label_hash(text: str) -> str:
    """Return the hash that metric labels contain instead of a long or private text: `sha256:…`, or "" for ""."""
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()}" if text else ""
