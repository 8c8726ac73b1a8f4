"""Translates storage errors to the StatusErrors that clients get, with upstream's texts.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/errors/storage.go, pkg/storage/etcd3/errors.go
"""

from __future__ import annotations

from types import TracebackType
from typing import Final

from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.storage.backend import NoSpace, RequestTooLarge
from tetrapod.generic.storage.errors import (
    KeyExists,
    KeyNotFound,
    PreconditionFailed,
    TooLargeResourceVersion,
    TooOldResourceVersion,
)
from tetrapod.generic.storage.unreadable import (
    GATE,
    CannotEncrypt,
    NotReady,
    Readable,
    Unreadable,
    UnreadableObject,
    list_text,
)
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.status import (
    StatusError,
    already_exists,
    bad_request,
    conflict,
    internal_error,
    not_found,
    resource_expired,
    server_timeout,
    too_large_resource_version,
    too_many_requests,
)

OPTIMISTIC_LOCK: Final = "the object has been modified; please apply your changes to the latest version and try again"
_RETRY_UNAVAILABLE_SECONDS: Final = 2
KEY_ROOT: Final = "/registry"
"""The prefix of the keys in error texts."""
_NOT_CORRUPT: Final = "unsafe deletion is not allowed because the object is decodable from storage"


def expired(error: TooOldResourceVersion) -> StatusError:
    """Return, not raise, the 410 Expired for a version or token that was compacted.

    For a token, `metadata.continue` has a token with which the client can continue the list at the current revision.
    """
    status_error = resource_expired(str(error))
    if error.fresh_token:
        status_error.metadata = {"continue": error.fresh_token}
    return status_error


def too_large(error: TooLargeResourceVersion) -> StatusError:
    """Return, not raise, the 504 Timeout for a resourceVersion that was not reached in time."""
    return too_large_resource_version(str(error), error.retry_seconds)


def storage_error_text(path: str, detail: str) -> str:
    """Return the text of upstream's InvalidObj error.

    Args:
        path: the full key of the object.
        detail: the reason, which the text contains as AdditionalErrorMsg.
    """
    return f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: {detail}"


def unreadable_status(unreadable: UnreadableObject, key: str) -> StatusError:
    """Return, not raise, the error for reading or deleting one object that cannot be read.

    Args:
        unreadable: the object.
        key: its key, which the text has without the prefix of all keys.
    """
    if feature_gates.enabled(GATE):
        return internal_error(unreadable.text(key.removeprefix(KEY_ROOT)))
    if unreadable.revision is None:
        return internal_error(unreadable.reason)
    return StatusError(500, "", unreadable.reason)


def update_status(unreadable: UnreadableObject) -> StatusError:
    """Return, not raise, the error for updating an object that cannot be read."""
    text = unreadable.message if feature_gates.enabled(GATE) else unreadable.reason
    return internal_error(text) if unreadable.revision is None else StatusError(500, "", text)


def unreadable_list_status(error: Unreadable, resource: GroupResource) -> StatusError:
    """Return, not raise, the error for a list of `resource` that contains unreadable objects.

    With the gate `AllowUnsafeMalformedObjectDeletion`, the causes name the objects by their keys.
    Upstream: aggregatedStorageError.NewAPIStatusError
    """
    text = list_text(error, resource)
    if not feature_gates.enabled(GATE):
        return internal_error(text) if error.first.revision is None else StatusError(500, "", text)
    causes: list[Object] = [
        {"reason": "UnexpectedServerResponse", "message": unreadable.text(), "field": unreadable.key}
        for unreadable in error.objects
    ]
    if error.truncated:
        causes.append({"reason": "FieldValueTooMany", "message": "too many errors, the list is truncated"})
    details: Object = {"name": "list"}
    if resource.group:
        details["group"] = resource.group
    details |= {"kind": resource.resource, "causes": causes}
    return StatusError(500, "StorageReadError", text, details)


class StoredTooLarge(StatusError):
    """The error, a 500, for an object that exceeds the size limit of the store.

    `message` is the store's text, as upstream.
    """

    def __init__(self, message: str) -> None:
        super().__init__(500, "", message)


class Translated:
    """A context manager that converts errors of the storage to StatusErrors; other errors pass through.

    Args:
        resource: the resource in error texts.
        name: the name of the object in error texts; "" for collections.
        action: the verb in error texts ("get", "list", "create", …).
        path: the full key, for error texts; "" if unknown.
    """

    __slots__ = ("action", "name", "path", "resource")

    def __init__(self, resource: GroupResource, name: str, action: str, path: str = "") -> None:
        self.resource, self.name, self.action, self.path = resource, name, action, path

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, StatusError):
            return
        status_error = self._status_error(error)
        if status_error is not None:
            try:
                raise status_error from error
            finally:
                del status_error

    def _status_error(self, error: BaseException) -> StatusError | None:
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
            case NoSpace():
                return StatusError(500, "", str(error))
            case Unreadable() if self.action == "list":
                return unreadable_list_status(error, self.resource)
            case Unreadable() if self.action == "update":
                return update_status(error.first)
            case Unreadable():
                return unreadable_status(error.first, self.path)
            case Readable():
                return conflict(self.resource, self.name, storage_error_text(self.path, _NOT_CORRUPT))
            case CannotEncrypt():
                return internal_error(str(error))
            case NotReady():
                return too_many_requests(str(error), 1)
            case Unavailable():
                return server_timeout(self.resource, self.action, _RETRY_UNAVAILABLE_SECONDS)
            case _:
                return None


class TranslatedRead(Translated):
    """A `Translated` for reads, where a ValueError means a malformed resourceVersion or continue token.

    Upstream returns a 400 for that only in lists (storage.ValidateListOptions), and a 500 otherwise.
    """

    __slots__ = ()

    def _status_error(self, error: BaseException) -> StatusError | None:
        if not isinstance(error, ValueError):
            return super()._status_error(error)
        return bad_request(str(error)) if self.action == "list" else StatusError(500, "", str(error))
