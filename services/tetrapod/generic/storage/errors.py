"""The errors of a `ResourceStorage` that answer a request. `unreadable.py` has those of stored values.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/errors.go
"""

from __future__ import annotations


class KeyExists(Exception):
    """A create failed because the key exists."""


class KeyNotFound(Exception):
    """An update or delete failed because the key does not exist."""


class PreconditionFailed(Exception):
    """A uid or resourceVersion precondition does not hold. The text is upstream's ("Precondition failed: UID in …")."""


class TooOldResourceVersion(Exception):
    """The history of the requested resourceVersion or continue token has been compacted.

    Args:
        message: the text for the client.
        fresh_token: for a continue token, another one that continues the list at the current revision, so that its
            pages may be inconsistent; "" for a resourceVersion.
    """

    def __init__(self, message: str, fresh_token: str = "") -> None:
        super().__init__(message)
        self.fresh_token = fresh_token


class TooLargeResourceVersion(Exception):
    """The requested resourceVersion is higher than the store's, and the cache did not reach it within the time limit.

    Args:
        requested: the requested resourceVersion.
        current: the revision that has been reached.
        retry_seconds: the seconds that the client is asked to wait before it tries again.
    """

    def __init__(self, requested: int, current: int, retry_seconds: int = 1) -> None:
        super().__init__(f"Too large resource version: {requested}, current: {current}")
        self.requested, self.current, self.retry_seconds = requested, current, retry_seconds
