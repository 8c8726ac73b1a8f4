"""Which stored values are completed with defaults when they are read."""

from __future__ import annotations

from tetrapod.generic.storage.backend import KeyValue
from tetrapod.generic.storage.cacher.entry import IncompleteEntry
from tetrapod.generic.storage.cacher.entry_reader import EntryReader
from tetrapod.machinery.gvk import Object

BARE = b'{"kind":"Claim","apiVersion":"v1","metadata":{"name":"a"}}'
COMPLETE = b'{"kind":"Claim","apiVersion":"v1","metadata":{"resourceVersion":"5","name":"a"},"mode":"Block"}'
INCOMPLETE = b'{"kind":"Claim","apiVersion":"v1","metadata":{"resourceVersion":"5","name":"a"}}'


class Mode:
    """The default `mode` of a kind."""

    exist = True
    may_change = False

    def complete(self, obj: Object) -> bool:
        obj.setdefault("mode", "Block")
        return True


def read(reader: EntryReader, revision: int = 5) -> bytes:
    raw = reader.read("a", KeyValue("/a", BARE, revision, 1)).raw
    return raw.replace(f'"{revision}"'.encode(), b'"5"')


def test_a_value_of_another_program_gets_its_defaults() -> None:
    assert read(EntryReader(Mode())) == COMPLETE


def test_a_value_is_only_marked_if_its_defaults_may_change() -> None:
    class Changing(Mode):
        may_change = True

    entry = EntryReader(Changing()).read("a", KeyValue("/a", BARE, 5, 1))
    assert (type(entry), entry.raw) == (IncompleteEntry, INCOMPLETE)


def test_a_value_that_lacks_nothing_is_unchanged_although_its_form_differs() -> None:
    value = b'{"kind":"Claim","apiVersion":"v1","metadata":{"name":"\\u003ca"},"mode":"Block"}'
    raw = EntryReader(Mode()).read("a", KeyValue("/a", value, 5, 1)).raw
    assert b'"name":"\\u003ca"' in raw


def test_a_value_that_does_not_match_its_kind_is_unchanged() -> None:
    class Malformed(Mode):
        def complete(self, obj: Object) -> bool:
            obj["half"] = True
            return False

    assert read(EntryReader(Malformed())) == INCOMPLETE


def test_the_event_of_an_own_write_is_not_completed() -> None:
    reader = EntryReader(Mode())
    reader.begin_write("a", BARE)
    reader.end_write("a", BARE, revision=5, reached=4)
    assert read(reader) == INCOMPLETE
    assert read(reader) == COMPLETE, "the write is forgotten with its event"


def test_the_event_of_an_own_write_may_arrive_before_the_result() -> None:
    reader = EntryReader(Mode())
    reader.begin_write("a", BARE)
    assert read(reader) == INCOMPLETE
    reader.end_write("a", BARE, revision=5, reached=5)
    assert read(reader) == COMPLETE


def test_a_write_without_a_result_is_forgotten() -> None:
    reader = EntryReader(Mode())
    reader.begin_write("a", BARE)
    reader.end_write("a", BARE, revision=0, reached=4)
    assert read(reader) == COMPLETE


def test_a_write_whose_event_the_cache_cannot_get_any_more_is_forgotten() -> None:
    reader = EntryReader(Mode())
    reader.begin_write("a", BARE)
    reader.end_write("a", BARE, revision=5, reached=6)
    assert read(reader) == COMPLETE
    reader.begin_write("a", BARE)
    reader.end_write("a", BARE, revision=7, reached=6)
    reader.forget_writes()
    assert read(reader, 7) == COMPLETE


def test_a_later_value_of_another_program_ends_the_write() -> None:
    reader = EntryReader(Mode())
    reader.begin_write("a", b"{}")
    reader.end_write("a", b"{}", revision=5, reached=4)
    assert read(reader, 6) == COMPLETE
    assert not reader._writes
