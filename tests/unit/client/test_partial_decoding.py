"""Tests of partially decoded responses: they hold the requested fields as plain objects, and the fields of every
response.
"""

from __future__ import annotations

import json

import msgspec

from tetrapod.generic.client.partial_decoding import decode_event, decode_list


class Metadata(msgspec.Struct):
    name: str


class Named(msgspec.Struct):
    metadata: Metadata


def test_only_requested_fields_of_a_list_are_decoded() -> None:
    items = [{"metadata": {"name": "a", "uid": "1"}, "spec": {"large": [1, 2]}}]
    answer = json.dumps(
        {"kind": "L", "metadata": {"resourceVersion": "7", "continue": "next"}, "items": items}
    ).encode()
    assert decode_list(Named, answer) == {
        "metadata": {"resourceVersion": "7", "continue": "next"},
        "items": [{"metadata": {"name": "a"}}],
    }


def test_an_empty_list_may_have_no_items() -> None:
    assert decode_list(Named, b'{"metadata":{"resourceVersion":"7"},"items":null}')["items"] is None


def test_events_are_reduced_except_for_other_kinds_of_objects() -> None:
    change = json.dumps({"type": "ADDED", "object": {"metadata": {"name": "a"}, "spec": {}}}).encode()
    assert decode_event(Named, change) == {"type": "ADDED", "object": {"metadata": {"name": "a"}}}
    rejection = {"type": "ERROR", "object": {"kind": "Status", "code": 410}}
    assert decode_event(Named, json.dumps(rejection).encode()) == rejection
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}
    assert decode_event(Named, json.dumps(bookmark).encode()) == bookmark
