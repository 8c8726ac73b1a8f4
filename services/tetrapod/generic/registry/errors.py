"""What storage raises, as the refusals that clients get: one place for the texts.

Follows k8s.io/apiserver/pkg/storage/errors/storage.go and pkg/storage/etcd3/errors.go.
"""

from __future__ import annotations

from types import TracebackType
from typing import Final

from tetrapod.generic.storage.backend import RequestTooLarge
from tetrapod.generic.storage.interface import (
    KeyExists,
    KeyNotFound,
    PreconditionFailed,
    TooLargeResourceVersion,
    TooOldResourceVersion,
)
from tetrapod.generic.storage.unreadable import CannotEncrypt, NotReady, NotTransformable, list_text, object_text
from tetrapod.generic.unavailable import Unavailable
from tetrapod.machinery.gvk import GroupResource
from tetrapod.machinery.status import (
    StatusError,
    already_exists,
    bad_request,
    conflict,
    internal_error,
    not_found,
    resource_expired,
    server_timeout,
    timeout,
    too_many_requests,
)

OPTIMISTIC_LOCK: Final = "the object has been modified; please apply your changes to the latest version and try again"
_RETRY_UNAVAILABLE_SECONDS: Final = 2


def expired(error: TooOldResourceVersion) -> StatusError:
    """410. A list that was begun can be gone on with, inconsistently, by the token in `metadata.continue`."""
    refusal = resource_expired(str(error))
    if error.fresh_token:
        refusal.metadata = {"continue": error.fresh_token}
    return refusal


def too_large(error: TooLargeResourceVersion) -> StatusError:
    refusal = timeout(str(error), error.retry_seconds)
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    refusal.details = {"causes": [cause], **(refusal.details or {})}
    return refusal


def storage_error_text(path: str, detail: str) -> str:
    """An InvalidObj error as upstream prints it; `path` is the whole key."""
    return f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: {detail}"


class StoredTooLarge(StatusError):
    """What the store says of an object that is larger than it takes, as upstream passes it on."""

    def __init__(self, message: str) -> None:
        super().__init__(500, "", message)


class Translated:
    """Within it, what storage raises leaves as a StatusError. `path` is the whole key, for the texts that show it."""

    __slots__ = ("action", "name", "path", "resource")

    def __init__(self, resource: GroupResource, name: str, action: str, path: str = "") -> None:
        self.resource, self.name, self.action, self.path = resource, name, action, path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if error is None or isinstance(error, StatusError):
            return
        refusal = self._refusal(error)
        if refusal is not None:
            raise refusal from error

    def _refusal(self, error: BaseException) -> StatusError | None:
        match error:
            case KeyNotFound():
                return not_found(self.resource, self.name)
            case KeyExists():
                return already_exists(self.resource, self.name)
            case PreconditionFailed():
                return conflict(self.resource, self.name, storage_error_text(self.path, str(error)))
            case TooOldResourceVersion():
                return expired(error)
            case TooLargeResourceVersion():
                return too_large(error)
            case RequestTooLarge():
                return StoredTooLarge(str(error))
            case NotTransformable() if self.action == "list":
                return StatusError(500, "StorageReadError", list_text(error, self.resource))
            case NotTransformable():
                return internal_error(object_text(error, self.path))
            case CannotEncrypt():
                return internal_error(str(error))
            case NotReady():
                return too_many_requests(str(error), 1)
            case Unavailable():
                return server_timeout(self.resource, self.action, _RETRY_UNAVAILABLE_SECONDS)
            case _:
                return None


class TranslatedRead(Translated):
    """The same for reads, where a ValueError is a resourceVersion or a continue token that cannot be read.

    Upstream makes a bad request of that in lists alone (storage.ValidateListOptions); elsewhere it is an error like any other.
    """

    __slots__ = ()

    def _refusal(self, error: BaseException) -> StatusError | None:
        if not isinstance(error, ValueError):
            return super()._refusal(error)
        return bad_request(str(error)) if self.action == "list" else StatusError(500, "", str(error))
