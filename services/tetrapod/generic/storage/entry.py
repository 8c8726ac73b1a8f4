"""`Entry`: one stored revision of one object, and the selectors that are applied to it.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/selection_predicate.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table_rows import StoredRow


class Entry(Protocol):
    """One stored revision of one object, as JSON bytes in the storage version including `metadata.resourceVersion`.

    Entries are immutable, and all requests share them. `object()` returns a fresh copy that the caller may change;
    `peek()` returns the parsed object that all callers share and must not change.

    `representations` caches other encodings of the same revision (another version, a watch frame), so that each is made
    once. It is dropped together with the parsed object when the entry has not been used for a while.

    Attributes:
        key: the key relative to the resource's prefix.
        revision: the store's revision of the last write, which is the resource version.
        raw: the JSON of the whole object, the concatenation of `head` and `item`.
        head: the type: `{"kind":…,"apiVersion":…,`.
        item: the rest, from `"metadata"` on.
        size: the number of bytes of `item`, which may be compressed.
        representations: the cached encodings, by keys that their users choose.
        uid: metadata.uid; "" if the field is missing.
        labels: metadata.labels; empty if the field is missing. Callers must not change them.
        namespace: metadata.namespace; "" for a cluster-scoped object.
        name: metadata.name.
        indexed: the value of the field that the strategy of the resource indexes; None before its first use.
        message: the object in the storage version as a protobuf message; None before its first use. Unlike the other
            encodings it is kept as long as the entry: clients in Go list everything in protobuf.
        row: the row of the object in a Table; None before its first use. It is kept as long as the entry, too.
    """

    key: str
    revision: int
    indexed: str | None
    message: bytes | None
    row: StoredRow | None

    @property
    def raw(self) -> bytes: ...

    @property
    def head(self) -> bytes: ...

    @property
    def item(self) -> bytes: ...

    @property
    def size(self) -> int: ...

    @property
    def representations(self) -> dict[Any, Any]: ...

    def object(self) -> Object: ...
    def peek(self) -> Object: ...

    @property
    def uid(self) -> str: ...

    @property
    def labels(self) -> Mapping[str, str]: ...

    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...


class IndexedValue(NamedTuple):
    """A value that selectors require of the field that the strategy of the resource indexes.

    Attributes:
        field: the name of the field.
        value: the value.
        of: returns the value that an entry has.
    """

    field: str
    value: str
    of: Callable[[Entry], str]

    def matches(self, entry: Entry) -> bool:
        """Return whether an entry has the value."""
        return self.of(entry) == self.value


@dataclass(frozen=True, slots=True)
class Predicate:
    """The selectors of a request, as functions that return whether an object matches.

    Attributes:
        labels: called with the labels of the object; None matches every object.
        fields: called with the object's entry; None matches every object.
        shard: called with the object's entry, before the others; None matches every object.
        index: the value of the indexed field that the selectors require; None if they require none. All objects that
            match have it.
    """

    labels: Callable[[Mapping[str, str]], bool] | None = None
    fields: Callable[[Entry], bool] | None = None
    shard: Callable[[Entry], bool] | None = None
    index: IndexedValue | None = None

    @property
    def empty(self) -> bool:
        """Whether the predicate matches every object."""
        return self.labels is None and self.fields is None and self.shard is None

    def matches(self, entry: Entry) -> bool:
        """Return whether an object matches all selectors.

        The labels are tested before the fields, which require parsing the object.
        """
        if self.shard is not None and not self.shard(entry):
            return False
        if self.labels is not None and not self.labels(entry.labels):
            return False
        return self.fields is None or self.fields(entry)

    @property
    def matcher(self) -> Callable[[Entry], bool]:
        """`matches`, or a function that returns the same in less time. Use it for many objects."""
        labels = self.labels
        if labels is None or self.fields is not None or self.shard is not None:
            return self.matches
        return lambda entry: labels(entry.labels)


EVERYTHING = Predicate()
