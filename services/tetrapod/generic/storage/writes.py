"""The preconditions of a write, and the function that computes the new object of an update.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/interfaces.go, Preconditions and UpdateFunc
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.errors import PreconditionFailed
from tetrapod.machinery.gvk import Object


@dataclass(frozen=True, slots=True)
class Preconditions:
    """The conditions under which a write proceeds.

    Attributes:
        uid: the uid that the object must have; None for any.
        resource_version: the resourceVersion that the object must have; None for any.
    """

    uid: str | None = None
    resource_version: str | None = None

    def check(self, entry: Entry | None) -> None:
        """Check that a stored entry has the required uid and resourceVersion; None is an absent object.

        Raises:
            PreconditionFailed: one of them is required and differs, or the object is absent; with upstream's text.
        """
        if self.uid is not None:
            uid = entry.uid if entry is not None else ""
            if uid != self.uid:
                raise PreconditionFailed(
                    f"Precondition failed: UID in precondition: {self.uid}, UID in object meta: {uid}"
                )
        if self.resource_version is not None:
            version = str(entry.revision) if entry is not None else ""
            if version != self.resource_version:
                raise PreconditionFailed(
                    f"Precondition failed: ResourceVersion in precondition: {self.resource_version}, ResourceVersion "
                    f"in object meta: {version}"
                )


NO_PRECONDITIONS: Final = Preconditions()
"""The preconditions that every object meets."""


class Updated(NamedTuple):
    """The new object that an update wants to store.

    Attributes:
        object: the object.
        ttl: its lifetime in seconds; 0 for no limit, None keeps the current one.
        large: whether to encode the object in a thread, because encoding it would block the event loop.
    """

    object: Object
    ttl: int | None = None
    large: bool = False


TryUpdate: TypeAlias = Callable[[Object | None, "Entry | None"], Awaitable[Updated | None]]
"""The function that computes an update.

It maps a copy of the stored object and its entry (both None: absent) to the new object, and may change the copy. It
returns None to leave the object unchanged. It is called again, with the new state, if another write came first.
"""
