"""Tables without rows."""

from __future__ import annotations

import orjson

from tetrapod.generic.endpoints.tables import Tables
from tetrapod.generic.registry.definition import Column, TableConvertor


def test_only_the_default_convertor_says_null_for_no_rows() -> None:
    own = TableConvertor((Column("Name"),), lambda obj: [obj["metadata"]["name"]])
    assert orjson.loads(Tables(own, "v1", "Metadata").table((), {}))["rows"] == []
    assert orjson.loads(Tables(None, "v1", "Metadata").table((), {}))["rows"] is None
