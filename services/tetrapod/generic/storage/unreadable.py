"""Values that are stored and cannot be read: encrypted with a key that is not known, or damaged; and what upstream says of them.

Upstream: NewCorruptObjError of k8s.io/apiserver/pkg/storage/errors.go, pkg/storage/etcd3/corrupt_obj_deleter.go (the text of lists).
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.unavailable import Unavailable
from tetrapod.machinery.gvk import GroupResource

ENCRYPTED: Final = b"k8s:enc:"
"""What every encrypted value begins with, whoever encrypted it."""
NOT_FOR_IDENTITY: Final = "identity transformer tried to read encrypted data"


class NotTransformable(Exception):
    """A value that cannot be decrypted; `more` values of the same range cannot be either."""

    def __init__(self, reason: str, key: str = "", more: int = 0) -> None:
        super().__init__(reason)
        self.reason, self.key, self.more = reason, key, more

    @property
    def what(self) -> str:
        return f"data from the storage is not transformable revision=0: {self.reason}"


class NotDecodable(NotTransformable):
    """An object that is stored as what nobody reads any more."""

    def __init__(self, reason: str, revision: int, key: str) -> None:
        super().__init__(reason, key)
        self.revision = revision

    @property
    def what(self) -> str:
        return f"object not decodable revision={self.revision}: {self.reason}"


class CannotEncrypt(Exception):
    """A value cannot be made ready to be stored."""


class NotReady(Unavailable):
    """The cache of a resource cannot be filled, since the store holds what cannot be read."""


def object_text(error: NotTransformable, key: str) -> str:
    return f"StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {error.what}"


def list_text(error: NotTransformable, resource: GroupResource) -> str:
    more = f" (and {error.more} more)" if error.more else ""
    return f"failed to read one or more {resource} from the storage: {object_text(error, error.key)}{more}"


def not_ready(error: NotTransformable, resource: GroupResource) -> NotReady:
    return NotReady(f"storage is (re)initializing: failed to list <unspecified>: {list_text(error, resource)}")
