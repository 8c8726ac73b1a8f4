"""JSON objects that keep their members as they were written, including duplicates.

Go's JSON patches insert the text of a value (encoding/json.RawMessage) into the text of a document and decode the
result. Errors in the value are therefore errors of the document.
"""

from __future__ import annotations

from typing import Any

import orjson

from tetrapod.machinery.serializer.json import Pairs, cleaned, pairs


class Written(dict[str, Any]):
    """A decoded JSON object that `dumps` encodes as it was written, with duplicate members (`members`).

    As a dict it has the last of several members with the same name. Copies are plain dicts, without duplicates.
    """

    def __init__(self, members: list[tuple[str, Any]]) -> None:
        super().__init__(members)
        self.members = members


def as_written(data: bytes) -> Any:
    """Return a decoded JSON value in which all objects are `Written`.

    Raises:
        DecodeError: the data is not JSON or nests too deeply, or (NumberError) a number does not fit a float64.
    """
    return _written(pairs(data))


def dumps(value: Any) -> bytes:
    """Encode a value as JSON, with the duplicate members of `Written` objects in it."""
    return orjson.dumps(value, default=_fragment, option=orjson.OPT_PASSTHROUGH_SUBCLASS)


def _written(value: Any) -> Any:
    if isinstance(value, Pairs):
        return Written([(cleaned(key), _written(member)) for key, member in value])
    return [_written(item) for item in value] if isinstance(value, list) else cleaned(value)


def _fragment(value: Any) -> orjson.Fragment:
    members = b",".join(orjson.dumps(key) + b":" + dumps(member) for key, member in value.members)
    return orjson.Fragment(b"{" + members + b"}")
