"""Tests of values from JSON patches, which keep their original text in error messages."""

from __future__ import annotations

from tetrapod.machinery.patch import json_patch
from tetrapod.machinery.serializer.duplicate_members import as_written, dumps

TWICE = b'{"a":"1","b":[{"c":1,"c":2}],"a":"2"}'


def patched(*operations: bytes) -> bytes:
    return dumps(json_patch.apply({"x": {}}, as_written(b"[%s]" % b",".join(operations))))


def add(path: bytes, value: bytes = TWICE) -> bytes:
    return b'{"op":"add","path":"%s","value":%s}' % (path, value)


def test_members_that_come_twice_are_written_twice() -> None:
    assert dumps(as_written(TWICE)) == TWICE
    assert as_written(TWICE) == {"a": "2", "b": [{"c": 2}]}, "decoders take the last"


def test_a_json_patch_keeps_duplicate_members_unless_its_path_crosses_them() -> None:
    assert patched(add(b"/x")) == b'{"x":%s}' % TWICE
    assert patched(add(b"/x"), b'{"op":"test","path":"/x/a","value":"2"}') == b'{"x":%s}' % TWICE
    assert patched(add(b"/x"), add(b"/x/d", b"1")) == b'{"x":{"a":"2","b":[{"c":1,"c":2}],"d":1}}'


def test_a_copy_is_written_as_its_source_and_changes_alone() -> None:
    copied = patched(add(b"/x"), b'{"op":"copy","from":"/x","path":"/y"}')
    assert copied == b'{"x":%s,"y":%s}' % (TWICE, TWICE)
    changed = patched(
        add(b"/x/z", b"{}"), b'{"op":"copy","from":"/x","path":"/y"}', add(b"/x/z/w", b"1"), add(b"/y/z/v", b"2")
    )
    assert changed == b'{"x":{"z":{"w":1}},"y":{"z":{"v":2}}}'
