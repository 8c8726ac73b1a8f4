"""What a call raises, as the errors of `backend.py`. The one place that knows etcd's texts (its codes alone do not tell)."""

from __future__ import annotations

from tetrapod.generic.rpc import Code, RpcError
from tetrapod.generic.storage.backend import Compacted, FutureRevision, LeaseNotFound, RequestTooLarge
from tetrapod.generic.unavailable import Unavailable


def translated(error: RpcError) -> Exception:
    details = error.details
    if "required revision has been compacted" in details:
        return Compacted(0)
    if "required revision is a future revision" in details:
        return FutureRevision(details)
    if "requested lease not found" in details:
        return LeaseNotFound()
    if "request is too large" in details or "message larger than max" in details:
        return RequestTooLarge()
    return Unavailable(f"etcd: {error.code.name}: {details}")


def points_elsewhere(error: RpcError) -> bool:
    """Whether another endpoint may well answer."""
    return error.code in {Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED}
