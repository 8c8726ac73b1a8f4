"""Tests of Tables: columns, rows, and kinds without columns."""

from __future__ import annotations

import orjson

from tetrapod.core.flowcontrol.flow_schemas import TABLE
from tetrapod.generic.endpoints.representation import Representation
from tetrapod.generic.endpoints.tables import Tables
from tetrapod.generic.http.negotiation.accept import Accepted
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.machinery.table import Column, TableConvertor


def test_only_the_default_convertor_has_null_for_no_rows() -> None:
    own = TableConvertor((Column("Name"),), lambda obj: [obj["metadata"]["name"]])
    assert orjson.loads(Tables(own, "v1", "Metadata").table((), {}))["rows"] == []
    assert orjson.loads(Tables(None, "v1", "Metadata").table((), {}))["rows"] is None


def test_columns_of_kinds_that_have_none_are_described_in_full() -> None:
    name, created = orjson.loads(Tables(None, "v1", "Metadata").table((), {}))["columnDefinitions"]
    assert (name["format"], created["type"]) == ("name", "date")
    assert name["description"].startswith("Name must be unique within a namespace. Is required when creating resources")
    assert created["description"].startswith(
        "CreationTimestamp is a timestamp representing the server time when this object was created. It"
    )


def test_columns_of_built_in_kinds_mean_what_upstream_says() -> None:
    own = TableConvertor((Column("Status"), Column("Other", description="Mine.")), lambda obj: ["", ""])
    table = builtin("", "componentstatuses", Strategy(), rest=Rest(), table=own).table
    status, other = orjson.loads(Tables(table, "v1", "Metadata").columns())
    assert (status["description"], other["description"]) == ("Status of the component conditions", "Mine.")


def test_a_list_made_on_demand_has_a_row_for_each_item() -> None:
    definition = builtin("", "componentstatuses", Strategy(), rest=Rest())
    listed = {
        "kind": "ComponentStatusList",
        "apiVersion": "v1",
        "metadata": {},
        "items": [{"metadata": {"name": n}} for n in "ab"],
    }
    represent = Representation(definition, "v1").objects
    table = orjson.loads(represent(listed, Accepted(form="Table")).body)
    assert [row["cells"][0] for row in table["rows"]] == ["a", "b"]
    assert table["rows"][0]["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": "a"},
    }
    partial = orjson.loads(represent(listed, Accepted(form="PartialObjectMetadataList")).body)
    assert (partial["kind"], [item["metadata"]["name"] for item in partial["items"]]) == (
        "PartialObjectMetadataList",
        ["a", "b"],
    )
    assert orjson.loads(represent(listed, Accepted()).body) == listed


def test_rows_of_flow_schemas_follow_each_other_as_requests_try_them() -> None:
    precedences = {"last": 900, "b": 5, "a": 5}
    head = b'{"kind":"FlowSchema","apiVersion":"flowcontrol.apiserver.k8s.io/v1",'
    entries = [
        StoredEntry.from_served(
            name, head + orjson.dumps({"metadata": {"name": name}, "spec": {"matchingPrecedence": n}})[1:], 1
        )
        for name, n in precedences.items()
    ]
    ordered = Tables(TABLE, "v1", "Metadata").in_order(entries)
    assert [entry.peek()["metadata"]["name"] for entry in ordered] == ["a", "b", "last"]
    assert Tables(None, "v1", "Metadata").in_order(entries) is entries
