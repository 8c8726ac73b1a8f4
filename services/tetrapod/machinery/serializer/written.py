"""`Written`: an object with its members as they were written, those that came twice and all.

Go's JSON patches put the text of a value into the text of a document (encoding/json.RawMessage) and decode the whole afterwards, so
what was wrong with the value is wrong with the document too.
"""

from __future__ import annotations

from typing import Any

import orjson

from tetrapod.machinery.serializer.json import Pairs, cleaned, pairs


class Written(dict[str, Any]):
    """As a dict it is what decoders make of it: the last of several members of one name. Its copy is that dict, no more."""

    def __init__(self, members: list[tuple[str, Any]]) -> None:
        super().__init__(members)
        self.members = members


def as_written(data: bytes) -> Any:
    """A JSON value whose objects are `Written`; `data` has been decoded before."""
    return _written(pairs(data))


def dumps(value: Any) -> bytes:
    return orjson.dumps(value, default=_fragment, option=orjson.OPT_PASSTHROUGH_SUBCLASS)


def _written(value: Any) -> Any:
    if isinstance(value, Pairs):
        return Written([(cleaned(key), _written(member)) for key, member in value])
    return [_written(item) for item in value] if isinstance(value, list) else cleaned(value)


def _fragment(value: Any) -> orjson.Fragment:
    members = b",".join(orjson.dumps(key) + b":" + dumps(member) for key, member in value.members)
    return orjson.Fragment(b"{" + members + b"}")
