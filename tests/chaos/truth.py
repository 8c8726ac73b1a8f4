"""The history of each key, read from the store without the server's code. The checkers compare with it."""

from __future__ import annotations

import bisect
import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from chaos.history import Seen
from chaos.kinds import COUNT, KINDS, MARK

Key = tuple[str, str]
FOR_EVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Version:
    """The state of a key from a revision on.

    `mark` is None for a deletion; the uid is then that of the deleted object.
    """

    revision: int
    mark: str | None
    count: int = 0
    uid: str = ""

    def shows(self, seen: Seen) -> bool:
        return (self.revision, self.mark, self.count, self.uid) == (seen.revision, seen.mark, seen.count, seen.uid)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a kind: the new state and the state before. Watches must send it."""

    name: str
    before: Version | None
    after: Version


class Spans:
    """Revisions at which a condition held, as ascending ranges."""

    def __init__(self, *ranges: tuple[int, int]) -> None:
        self.ranges = [span for span in ranges if span[0] <= span[1]]

    def add(self, first: int, last: int) -> None:
        if first <= last:
            self.ranges.append((first, last))

    def first_from(self, floor: int) -> int | None:
        """Return the smallest revision that is at least `floor`."""
        index = bisect.bisect_left(self.ranges, floor, key=lambda span: span[1])
        return max(floor, self.ranges[index][0]) if index < len(self.ranges) else None


class Truth:
    """The versions of all keys. Those of a key are added in ascending order."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[int, Spans, Spans]] = {}
        self.versions: dict[Key, list[Version]] = defaultdict(list)
        self.changes: dict[str, list[Change]] = defaultdict(list)
        self._revisions: dict[str, list[int]] = defaultdict(list)

    def add(self, kind: str, name: str, version: Version) -> None:
        """Add a version. Call it in the order of revisions."""
        versions = self.versions[kind, name]
        before = versions[-1] if versions and versions[-1].mark is not None else None
        if version.mark is None and before is not None:
            version = Version(version.revision, None, before.count, before.uid)
        versions.append(version)
        self.changes[kind].append(Change(name, before, version))
        self._revisions[kind].append(version.revision)

    def add_raw(self, key: str, value: bytes | None, revision: int) -> None:
        """Add a change of the store, ignoring keys of other objects."""
        for kind in KINDS:
            if key.startswith(kind.prefix):
                self.add(kind.name, key.removeprefix(kind.prefix), _version(value, revision))

    def present(self, kind: str, name: str) -> Spans:
        """Return the revisions at which the object existed."""
        return self._presence(kind, name)[0]

    def absent(self, kind: str, name: str) -> Spans:
        return self._presence(kind, name)[1]

    def _presence(self, kind: str, name: str) -> tuple[Spans, Spans]:
        versions = self.versions.get((kind, name), [])
        known = self._known.get((kind, name))
        if known is None or known[0] != len(versions):
            there, away, since, is_there = Spans(), Spans(), 0, False
            for version in versions:
                if is_there != (version.mark is not None):
                    (there if is_there else away).add(since, version.revision - 1)
                    since, is_there = version.revision, not is_there
            (there if is_there else away).add(since, FOR_EVER)
            known = self._known[kind, name] = (len(versions), there, away)
        return known[1:]

    def while_it_was(self, kind: str, name: str, revision: int) -> tuple[int, int]:
        """Return the first and the last revision at which the version created at `revision` was current."""
        versions = self.versions.get((kind, name), [])
        index = bisect.bisect_right(versions, revision, key=lambda version: version.revision)
        return revision, versions[index].revision - 1 if index < len(versions) else FOR_EVER

    def at(self, kind: str, name: str, revision: int) -> Version | None:
        """Return the version of a key at a revision, or None if the object did not exist."""
        versions = self.versions.get((kind, name), [])
        index = bisect.bisect_right(versions, revision, key=lambda version: version.revision) - 1
        return versions[index] if index >= 0 and versions[index].mark is not None else None

    def exactly(self, kind: str, name: str, revision: int) -> Version | None:
        """Return the version created at a revision, which may be a deletion."""
        versions = self.versions.get((kind, name), [])
        index = bisect.bisect_left(versions, revision, key=lambda version: version.revision)
        return versions[index] if index < len(versions) and versions[index].revision == revision else None

    def snapshot(self, kind: str, revision: int) -> dict[str, Version]:
        names = [name for of, name in self.versions if of == kind]
        found = {name: self.at(kind, name, revision) for name in names}
        return {name: version for name, version in found.items() if version is not None}

    def after(self, kind: str, revision: int) -> int:
        """Return the index of the first change of a kind after a revision."""
        return bisect.bisect_right(self._revisions[kind], revision)


def _version(value: bytes | None, revision: int) -> Version:
    if value is None:
        return Version(revision, None)
    metadata = json.loads(value)["metadata"]
    annotations = metadata.get("annotations") or {}
    return Version(revision, annotations.get(MARK, ""), int(annotations.get(COUNT, 0)), metadata["uid"])


def truth_of(changes: Iterable[tuple[str, bytes | None, int]]) -> Truth:
    """Build the history.

    Args:
        changes: key, value (None for a deletion) and revision of each change, in any order.
    """
    truth = Truth()
    for key, value, revision in sorted(changes, key=lambda change: change[2]):
        truth.add_raw(key, value, revision)
    return truth
