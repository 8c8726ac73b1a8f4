"""The identity of this API server in metrics and leases.

Upstream: staging/src/k8s.io/apiserver/pkg/server/config.go, NewConfig.
"""

from __future__ import annotations

import base64
import hashlib
import socket
from functools import cache


@cache
def apiserver_id() -> str:
    """Return the identity of the kube-apiserver on this host, derived from the host name (`identity_of`)."""
    return identity_of(socket.gethostname())


def identity_of(hostname: str, server: str = "kube-apiserver") -> str:
    """Return `apiserver-` and a hash of the host name and of the server's name, since a host may run several."""
    parts = [part.encode("utf-8", "surrogateescape") for part in (hostname, server)]
    digest = hashlib.sha256(b"".join(len(part).to_bytes(2, "big") + part for part in parts)).digest()[:16]
    return "apiserver-" + base64.b32encode(digest).decode().rstrip("=").lower()


def label_hash(text: str) -> str:
    """Return the hash that metric labels contain instead of a long or private text: `sha256:…`, or "" for ""."""
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()}" if text else ""
