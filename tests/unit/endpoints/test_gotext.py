"""How a refused patch quotes the object."""

from __future__ import annotations

from tetrapod.generic.endpoints.gotext import go_json, touched_by_json_patch, touched_by_merge

OBJECT = {
    "kind": "ConfigMap",
    "apiVersion": "v1",
    "metadata": {"uid": "u", "name": "a", "managedFields": [{"time": "t", "manager": "m"}]},
    "data": {"b": "1", "a": "2"},
}


def test_what_a_merge_went_through_is_sorted_and_the_rest_is_in_the_order_of_structs() -> None:
    text = go_json(OBJECT, touched_by_merge({"data": {"a": "2"}}))
    metadata = '{"name":"a","uid":"u","managedFields":[{"manager":"m","time":"t"}]}'
    assert text == f'{{"apiVersion":"v1","data":{{"a":"2","b":"1"}},"kind":"ConfigMap","metadata":{metadata}}}'


def test_a_json_patch_sorts_the_objects_on_its_paths() -> None:
    text = go_json(OBJECT, touched_by_json_patch([{"op": "add", "path": "/metadata/x", "value": 1}]))
    assert '"metadata":{"managedFields":[' in text


def test_custom_objects_are_maps_all_the_way() -> None:
    assert go_json({"b": {"d": 1, "c": 2}, "a": 0}, {}, sort_all=True) == '{"a":0,"b":{"c":2,"d":1}}'
