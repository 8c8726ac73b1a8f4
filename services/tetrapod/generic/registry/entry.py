"""`Unstored`: an `Entry` that is not in the store, such as the result of a dry run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tetrapod.generic.scheduling.offload import in_thread
from tetrapod.generic.storage.encoding import divided
from tetrapod.generic.storage.entry import Entry
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.json_pieces import loads
from tetrapod.machinery.serializer.json import encode_large
from tetrapod.machinery.serializer.raw_json import encode_texts
from tetrapod.machinery.table_rows import StoredRow


class Unstored:
    """An `Entry` of an object that is not in the store in this form.

    It is the result of a dry run, the last state of a deleted object, or an object whose hidden fields were removed.
    The object is encoded in the constructor.

    Args:
        key: the key relative to the resource's prefix.
        obj: the object, which is not copied and must not be modified afterwards.
        revision: the revision of the entry; 0 for one that was never stored.
        large: whether to encode the object in steps between which other threads can run. The constructor must then be
            called in a worker thread, as `unstored` does.
    """

    __slots__ = ("_object", "indexed", "key", "message", "raw", "representations", "revision", "row")

    def __init__(self, key: str, obj: Object, revision: int = 0, *, large: bool = False) -> None:
        self.key = key
        self.raw = encode_large(obj) if large else encode_texts(obj)
        self.revision = revision
        self.representations: dict[Any, Any] = {}
        self.indexed: str | None = None
        self.message: bytes | None = None
        self.row: StoredRow | None = None
        self._object = obj

    @property
    def head(self) -> bytes:
        """The bytes of the object's type: `{"kind":…,"apiVersion":…,`."""
        return divided(self.raw)[0]

    @property
    def item(self) -> bytes:
        """The bytes of the object after its type, from `"metadata"` on."""
        return divided(self.raw)[1]

    @property
    def size(self) -> int:
        return len(self.item)

    def object(self) -> Object:
        """Return a copy that the caller may change."""
        copy: Object = loads(self.raw)
        return copy

    def peek(self) -> Object:
        """Return the object itself, not a copy. The caller must not modify it."""
        return self._object

    @property
    def uid(self) -> str:
        uid: str = self._object["metadata"].get("uid") or ""
        return uid

    @property
    def labels(self) -> Mapping[str, str]:
        return self._object["metadata"].get("labels") or {}

    @property
    def namespace(self) -> str:
        namespace: str = self._object["metadata"].get("namespace") or ""
        return namespace

    @property
    def name(self) -> str:
        name: str = self._object["metadata"].get("name") or ""
        return name


def changed_entry(
    entry: Entry, key: object, change: Callable[[Object], bool], make: type[Unstored] = Unstored
) -> Entry:
    """Return an entry of a changed object; the same entry if nothing changes. The result is cached in `entry`.

    Args:
        entry: the entry.
        key: the key of the result among the cached ones.
        change: changes an object in place, and returns whether it did.
        make: the type of the new entry.
    """
    changed: Entry | None = entry.representations.get(key)
    if changed is None:
        obj = entry.object()
        changed = make(entry.key, obj, entry.revision) if change(obj) else entry
        entry.representations[key] = changed
    return changed


async def unstored(key: str, obj: Object, revision: int = 0, *, large: bool) -> Unstored:
    """Return a new `Unstored` entry of an object. With `large`, the object is encoded in a thread."""
    return await in_thread(Unstored, key, obj, revision, large=True) if large else Unstored(key, obj, revision)
