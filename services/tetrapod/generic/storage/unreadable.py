"""Errors for stored values that cannot be read, with upstream's texts.

The values are damaged or encrypted with an unknown key.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/errors.go, NewCorruptObjError;
pkg/storage/etcd3/corrupt_obj_deleter.go (lists)
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.lifecycle import Unavailable
from tetrapod.machinery.gvk import GroupResource

ENCRYPTED: Final = b"k8s:enc:"
"""The prefix of every encrypted value, whichever provider wrote it."""
NOT_FOR_IDENTITY: Final = "identity transformer tried to read encrypted data"


class NotTransformable(Exception):
    """A value that cannot be decrypted.

    Args:
        reason: the error of the decryption.
        key: the full key of the value; empty if it is not known.
        more: the number of further such values in the same list.
    """

    def __init__(self, reason: str, key: str = "", more: int = 0) -> None:
        super().__init__(reason)
        self.reason, self.key, self.more = reason, key, more

    @property
    def message(self) -> str:
        """The text that upstream puts into `AdditionalErrorMsg` for a value that cannot be decrypted."""
        return f"data from the storage is not transformable revision=0: {self.reason}"


class NotDecodable(NotTransformable):
    """A stored value that can be decrypted, but is not an object of a known type.

    Args:
        reason: the error of the decoder.
        revision: the mod revision of the value.
        key: the full key of the value.
    """

    def __init__(self, reason: str, revision: int, key: str) -> None:
        super().__init__(reason, key)
        self.revision = revision

    @property
    def message(self) -> str:
        """The text that upstream puts into `AdditionalErrorMsg` for an object that cannot be decoded."""
        return f"object not decodable revision={self.revision}: {self.reason}"


class CannotEncrypt(Exception):
    """A value cannot be encrypted for storage, such as when a KMS plugin fails. The text gives the reason."""


class NotReady(Unavailable):
    """The cache of a resource cannot be filled, because the store contains values that cannot be read."""


def object_text(error: NotTransformable, key: str) -> str:
    """Return the error message for reading the one object with the full key `key`."""
    return f"StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {error.message}"


def list_text(error: NotTransformable, resource: GroupResource) -> str:
    """Return the error message for a list of `resource` that contains unreadable objects; it names the first one."""
    more = f" (and {error.more} more)" if error.more else ""
    return f"failed to read one or more {resource} from the storage: {object_text(error, error.key)}{more}"


def not_ready(error: NotTransformable, resource: GroupResource) -> NotReady:
    """Return, not raise, the error for reads of a watch cache that cannot be filled because of `error`."""
    return NotReady(f"storage is (re)initializing: failed to list <unspecified>: {list_text(error, resource)}")
