"""Protobuf messages of stored objects: what is kept, and for how long."""

from __future__ import annotations

import pytest

from tetrapod.core.v1 import config_maps
from tetrapod.generic.endpoints.conversion import Conversion
from tetrapod.generic.endpoints.protobuf_entries import Messages
from tetrapod.generic.http.negotiation.accept import PARTIAL, PROTOBUF, Accepted
from tetrapod.generic.scheduling.offload import LARGE
from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.generic.storage.encoding import encode

DEFINITION = config_maps.definition()
MESSAGES = Messages(DEFINITION, Conversion(DEFINITION, "v1"))
WHOLE = Accepted(PROTOBUF)


def config_map(value: str = "") -> StoredEntry:
    obj = {"metadata": {"name": "a", "namespace": "ns"}, "data": {"a": value}}
    return StoredEntry.from_stored("ns/a", encode(obj, "v1", "ConfigMap"), 7)


def test_the_message_outlives_what_else_was_made_of_the_entry() -> None:
    """A list of more objects than are kept in parsed form must not encode all of them again."""
    entry = config_map()
    message = MESSAGES.item(entry, WHOLE)
    entry.drop_derived_data()
    assert MESSAGES.item(entry, WHOLE) is message


def test_the_message_is_that_of_the_revision() -> None:
    assert MESSAGES.item(config_map("old"), WHOLE) != MESSAGES.item(config_map("new"), WHOLE)


@pytest.mark.parametrize(
    ("entry", "accepted"), [(config_map("x" * LARGE), WHOLE), (config_map(), Accepted(PROTOBUF, PARTIAL, "v1"))]
)
def test_messages_of_large_objects_and_of_metadata_are_not_kept(entry: StoredEntry, accepted: Accepted) -> None:
    message = MESSAGES.item(entry, accepted)
    entry.drop_derived_data()
    assert MESSAGES.item(entry, accepted) == message
    assert entry.message is None
