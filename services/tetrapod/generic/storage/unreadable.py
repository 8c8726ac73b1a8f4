"""Errors for stored values that cannot be read.

The values are damaged or encrypted with an unknown key. `registry/errors` has the texts that clients get.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/errors.go, NewCorruptObjError;
pkg/storage/etcd3/corrupt_obj_deleter.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupResource

ENCRYPTED: Final = b"k8s:enc:"
"""The prefix of every encrypted value, whichever provider wrote it."""
NOT_FOR_IDENTITY: Final = "identity transformer tried to read encrypted data"
GATE: Final = "AllowUnsafeMalformedObjectDeletion"
"""The gate with which errors name unreadable objects, and with which these objects can be deleted."""
MOST: Final = 100
"""The number of unreadable objects after which a list ends."""


class UnreadableObject(NamedTuple):
    """A stored object that cannot be read.

    Attributes:
        key: the full key; "" if it is not known.
        reason: the error of the decryption or of the decoder.
        revision: the mod revision of a value that can be decrypted but not decoded; None for one that cannot be
            decrypted.
    """

    key: str
    reason: str
    revision: int | None = None

    @property
    def message(self) -> str:
        """The text that upstream puts into `AdditionalErrorMsg`."""
        if self.revision is None:
            return f"data from the storage is not transformable revision=0: {self.reason}"
        return f"object not decodable revision={self.revision}: {self.reason}"

    def text(self, key: str = "") -> str:
        """Return the message of upstream's storage error. `key` replaces the key of the object, if it is given."""
        location = f"Key: {key or self.key}, ResourceVersion: 0"
        return f"StorageError: corrupt object, Code: 7, {location}, AdditionalErrorMsg: {self.message}"


class Unreadable(Exception):
    """Stored objects cannot be read.

    Args:
        objects: the objects, at least one; those of a list in the order of their keys.
        truncated: whether a list has ended because there are too many of them.
    """

    def __init__(self, objects: Sequence[UnreadableObject], *, truncated: bool = False) -> None:
        super().__init__(objects[0].reason)
        self.objects, self.truncated = tuple(objects), truncated

    @property
    def first(self) -> UnreadableObject:
        """The first object."""
        return self.objects[0]


class NotTransformable(Unreadable):
    """A value that cannot be decrypted.

    Args:
        reason: the error of the decryption.
        key: the full key of the value; empty if it is not known.
    """

    def __init__(self, reason: str, key: str = "") -> None:
        super().__init__((UnreadableObject(key, reason),))


class NotDecodable(Unreadable):
    """A stored value that can be decrypted, but is not an object of a known type.

    Args:
        reason: the error of the decoder.
        revision: the mod revision of the value.
        key: the full key of the value.
    """

    def __init__(self, reason: str, revision: int, key: str) -> None:
        super().__init__((UnreadableObject(key, reason, revision),))


class CannotEncrypt(Exception):
    """A value cannot be encrypted for storage, such as when a KMS plugin fails. The text gives the reason."""


class NotReady(Unavailable):
    """The cache of a resource cannot be filled, because the store contains values that cannot be read."""


class Readable(Exception):
    """The error for an object that was to be deleted because it cannot be read, but can be read."""


class UnreadableObjects:
    """Collects the unreadable objects of a list.

    With the gate `AllowUnsafeMalformedObjectDeletion`, an error names up to 100 of them; without it, the first one.
    """

    def __init__(self) -> None:
        self._found: list[UnreadableObject] = []

    def add(self, error: Unreadable) -> None:
        """Add an object that cannot be read.

        Raises:
            Unreadable: with the gate, the hundredth object was added, and the error names all; without it, at the first
                call.
        """
        self._found.append(error.first)
        named = feature_gates.enabled(GATE)
        if not named or len(self._found) >= MOST:
            raise Unreadable(self._found, truncated=named)

    def check(self) -> None:
        """Do nothing if no object was added. Raises Unreadable otherwise."""
        if self._found:
            raise Unreadable(self._found)


def list_text(error: Unreadable, resource: GroupResource) -> str:
    """Return the message for a list of `resource` that contains unreadable objects; it names the first one."""
    first = error.first
    if not feature_gates.enabled(GATE):
        return first.reason if first.revision is not None else _not_transformed(first)
    others = len(error.objects) - 1
    more = f" (and {others} more)" if others else ""
    return f"failed to read one or more {resource} from the storage: {first.text()}{more}"


def _not_transformed(unreadable: UnreadableObject) -> str:
    return f"unable to transform key {go_quote(unreadable.key)}: {unreadable.reason}"


def not_ready(error: Unreadable, resource: GroupResource) -> NotReady:
    """Return, not raise, the error for reads of a watch cache that cannot be filled because of `error`."""
    return NotReady(f"storage is (re)initializing: failed to list <unspecified>: {list_text(error, resource)}")
