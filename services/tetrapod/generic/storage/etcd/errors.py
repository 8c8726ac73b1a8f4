"""Translation of gRPC errors to the errors of `backend.py`.

It relies on etcd's error texts, because the status codes are ambiguous.
"""

from __future__ import annotations

from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.rpc import Code, RpcError
from tetrapod.generic.rpc.errors import rpc_text
from tetrapod.generic.storage.backend import Compacted, FutureRevision, LeaseNotFound, NoSpace, RequestTooLarge


def translated(error: RpcError) -> Exception:
    """Return, not raise, the exception that methods of `Backend` raise for a gRPC error.

    It is `Unavailable` if none is more specific.
    """
    details = error.details
    if "required revision has been compacted" in details:
        return Compacted(0)
    if "required revision is a future revision" in details:
        return FutureRevision(details)
    if "requested lease not found" in details:
        return LeaseNotFound()
    if "request is too large" in details:
        return RequestTooLarge()
    if "database space exceeded" in details:
        return NoSpace(details)
    if "message larger than max" in details:
        return RequestTooLarge(rpc_text(error))
    return Unavailable(f"etcd: {error.code.name}: {details}")


def points_elsewhere(error: RpcError) -> bool:
    """Return whether a call failed because the member did not respond, so that another endpoint may be able to."""
    return error.code in {Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED}
