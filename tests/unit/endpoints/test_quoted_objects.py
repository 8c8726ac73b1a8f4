"""Tests of how the rejection of a patch quotes the object."""

from __future__ import annotations

import json
from typing import Any

from tetrapod.generic.endpoints.quoted_objects import (
    in_go_order,
    sort_touched,
    sorted_members,
    touched_by_json_patch,
    touched_by_merge,
)
from tetrapod.machinery.patch import json_patch, merge
from tetrapod.machinery.types.definitions import load

NODE = load("io.k8s.api.core.v1.Service")
OBJECT: dict[str, Any] = {
    "kind": "Service",
    "apiVersion": "v1",
    "metadata": {
        "uid": "u",
        "name": "a",
        "managedFields": [{"time": "t", "manager": "m"}],
        "labels": {"z": "1", "y": "2"},
    },
    "spec": {
        "selector": {"b": "1", "a": "2"},
        "type": "ClusterIP",
        "ports": [{"port": 80, "name": "x"}, {"port": 81, "name": "y"}],
    },
}


def text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def patched(*operations: dict[str, Any]) -> Any:
    return sort_touched(
        json_patch.apply(in_go_order(OBJECT, NODE), list(operations)), touched_by_json_patch(operations)
    )


def merged(patch: dict[str, Any]) -> Any:
    return sort_touched(merge.apply(in_go_order(OBJECT, NODE), patch), touched_by_merge(patch, OBJECT))


def test_merged_maps_are_sorted_and_others_are_in_the_order_of_structs() -> None:
    ordered = merged({"spec": {"type": "ClusterIP"}})
    metadata = '{"name":"a","uid":"u","labels":{"y":"2","z":"1"},"managedFields":[{"manager":"m","time":"t"}]}'
    spec = '{"ports":[{"name":"x","port":80},{"name":"y","port":81}],"selector":{"a":"2","b":"1"},"type":"ClusterIP"}'
    assert text(ordered) == f'{{"apiVersion":"v1","kind":"Service","metadata":{metadata},"spec":{spec}}}'


def test_a_list_that_a_merge_puts_in_the_place_of_an_object_keeps_its_order() -> None:
    ordered = merged({"spec": {"selector": [{"b": 1, "a": [{"d": 1, "c": 2}]}]}})
    assert text(ordered["spec"]["selector"]) == '[{"b":1,"a":[{"d":1,"c":2}]}]'


def test_a_merge_sorts_all_that_it_puts_in() -> None:
    ordered = merged({"spec": {"ports": [{"protocol": "TCP", "port": 1}]}})
    assert text(ordered["spec"]["ports"]) == '[{"port":1,"protocol":"TCP"}]'


def test_a_json_patch_sorts_the_objects_on_its_paths() -> None:
    assert text(patched({"op": "add", "path": "/metadata/x", "value": 1})["metadata"]).startswith('{"labels":')
    ordered = patched({"op": "add", "path": "/spec/ports/1/appProtocol", "value": "h"})
    assert text(ordered["spec"]["ports"]) == '[{"name":"x","port":80},{"appProtocol":"h","name":"y","port":81}]'


def test_values_added_by_a_json_patch_keep_their_text() -> None:
    ordered = patched({"op": "add", "path": "/spec/ports/-", "value": {"targetPort": 1, "name": "z", "port": 3}})
    assert text(ordered["spec"]["ports"][2]) == '{"targetPort":1,"name":"z","port":3}'


def test_values_moved_by_a_json_patch_keep_their_order() -> None:
    ordered = patched({"op": "move", "path": "/spec/x", "from": "/metadata"})
    assert list(ordered["spec"]["x"]) == ["name", "uid", "labels", "managedFields"]


def test_a_test_sorts_all_that_it_looks_at() -> None:
    ordered = patched({"op": "test", "path": "/metadata/managedFields", "value": OBJECT["metadata"]["managedFields"]})
    assert list(ordered["metadata"]) == ["labels", "managedFields", "name", "uid"]
    ordered = patched({"op": "test", "path": "/spec", "value": OBJECT["spec"]})
    assert list(ordered["spec"]) == ["ports", "selector", "type"]


def test_embedded_structs_are_written_at_their_place() -> None:
    volume = {"emptyDir": {}, "name": "v"}
    node = load("io.k8s.api.core.v1.Volume")
    assert list(in_go_order(volume, node)) == ["name", "emptyDir"]


def test_a_value_that_replaces_a_patched_one_keeps_its_order() -> None:
    odd = {"z": "1", "a": "2"}
    replaced = patched(
        {"op": "add", "path": "/spec/selector/x", "value": "1"}, {"op": "add", "path": "/spec/selector", "value": odd}
    )
    assert text(replaced["spec"]["selector"]) == '{"z":"1","a":"2"}'
    gone_through = {"op": "add", "path": "/spec/selector/x", "value": "1"}
    copied = patched(
        {"op": "add", "path": "/spec/selector", "value": odd},
        gone_through,
        {"op": "copy", "from": "/spec/selector", "path": "/x"},
    )
    assert text(copied["x"]) == '{"a":"2","x":"1","z":"1"}'


def test_custom_objects_are_maps_all_the_way() -> None:
    assert json.dumps(sorted_members({"b": {"d": 1, "c": 2}, "a": 0})) == '{"a": 0, "b": {"c": 2, "d": 1}}'
