"""Tests of managed fields of custom resources, by structural schema: lists by type, atomic maps and unknown fields."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.machinery.fieldmanager.manager import FieldManager
from tetrapod.machinery.fieldmanager.scale import ScaleHandler
from tetrapod.machinery.gvk import GroupVersionKind, Object
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.status import StatusError

KIND = GroupVersionKind("example.com", "v1", "Widget")


def node(type: str = "", **attributes: Any) -> SchemaNode:
    built = SchemaNode(type)
    for name, value in attributes.items():
        setattr(built, name, value)
    return built


STRING, INTEGER = node("string"), node("integer")
PORT = node("object", properties={"port": INTEGER, "protocol": node("string", default="TCP"), "name": STRING})
SPEC = node(
    "object",
    properties={
        "n": INTEGER,
        "s": STRING,
        "plain": node("array", items=STRING),
        "set": node("array", items=STRING, list_type="set"),
        "ports": node("array", items=PORT, list_type="map", list_map_keys=("port", "protocol")),
        "map": node("object", additional_properties=STRING),
        "atomic": node("object", additional_properties=STRING, map_type="atomic"),
        "free": node("object", preserve_unknown=True),
        "intOrString": node(int_or_string=True),
    },
)


def widgets() -> FieldManager:
    root = node("object", properties={"spec": SPEC, "status": node("object", preserve_unknown=True)})
    return FieldManager(KIND, lambda version: root if version == KIND.api_version else None)


MANAGER = widgets()


def widget(spec: Any = None, **metadata: Any) -> Object:
    body: Object = {"apiVersion": KIND.api_version, "kind": KIND.kind, "metadata": {"name": "w", **metadata}}
    return body if spec is None else {**body, "spec": spec}


def stored(obj: Object) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "uid": "u"}}


def owned(obj: Object) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", [])}


def test_a_create_owns_containers_too() -> None:
    created = MANAGER.update(
        None, widget({"n": 1, "map": {"a": "x"}, "plain": ["p"], "set": ["b", "a"], "free": {"x": {"y": [1]}}}), "m"
    )
    assert owned(created) == {
        "m": {
            "f:spec": {
                ".": {},
                "f:free": {".": {}, "f:x": {".": {}, "f:y": {}}},
                "f:map": {".": {}, "f:a": {}},
                "f:n": {},
                "f:plain": {},
                "f:set": {".": {}, 'v:"a"': {}, 'v:"b"': {}},
            }
        }
    }
    [entry] = created["metadata"]["managedFields"]
    assert list(entry) == ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1"]


def test_an_apply_owns_what_it_mentions_and_nothing_else() -> None:
    spec = {
        "map": {"a": "x"},
        "atomic": {"a": "x"},
        "ports": [{"port": 443}, {"port": 80, "protocol": "UDP"}],
        "free": {},
        "s": None,
    }
    applied = MANAGER.apply(None, widget(spec), "m", force=False)
    assert owned(applied) == {
        "m": {
            "f:spec": {
                "f:atomic": {},
                "f:free": {},
                "f:map": {"f:a": {}},
                "f:ports": {
                    'k:{"port":80,"protocol":"UDP"}': {".": {}, "f:port": {}, "f:protocol": {}},
                    'k:{"port":443,"protocol":"TCP"}': {".": {}, "f:port": {}},
                },
                "f:s": {},
            }
        }
    }


def test_fields_left_out_by_an_apply_are_removed_unless_owned_by_others() -> None:
    live = stored(MANAGER.apply(None, widget({"map": {"a": "1", "b": "2", "c": "3"}, "n": 1}), "one", force=False))
    live = MANAGER.apply(live, widget({"map": {"b": "2"}}), "two", force=False)
    live = MANAGER.update(live, {**live, "spec": {**live["spec"], "s": "by update"}}, "three")
    live = MANAGER.apply(live, widget({"map": {"a": "1"}}), "one", force=False)
    assert live["spec"] == {"map": {"a": "1", "b": "2"}, "s": "by update"}


def test_another_manager_s_value_is_a_conflict_and_force_takes_it() -> None:
    live = stored(MANAGER.apply(None, widget({"n": 1, "s": "a"}), "one", force=False))
    with pytest.raises(StatusError, match=r'Apply failed with 1 conflict: conflict with "one": \.spec\.n$') as raised:
        MANAGER.apply(live, widget({"n": 2}), "two", force=False)
    assert raised.value.code == 409
    taken = MANAGER.apply(live, widget({"n": 2}), "two", force=True)
    assert owned(taken) == {"one": {"f:spec": {"f:s": {}}}, "two": {"f:spec": {"f:n": {}}}}
    shared = MANAGER.apply(live, widget({"n": 1}), "two", force=False)
    assert owned(shared) == {"one": {"f:spec": {"f:n": {}, "f:s": {}}}, "two": {"f:spec": {"f:n": {}}}}
    assert "time" not in next(e for e in shared["metadata"]["managedFields"] if e["manager"] == "two")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"unknown": 1}, ".spec.unknown: field not declared in schema"),
        ({"n": "x"}, ".spec.n: expected numeric (int or float), got string"),
        ({"s": 1}, ".spec.s: expected string, got &value.valueUnstructured{Value:1}"),
        ({"set": ["a", "a"]}, '.spec.set: duplicate entries for key [="a"]'),
        ({"set": [None]}, ".spec.set: element 0: associative list without keys has an element that's an explicit null"),
        ({"ports": ["x"]}, ".spec.ports: element 0: associative list with keys may not have non-map elements"),
        (
            {"map": {"a": ["b"]}},
            '.spec.map.a: expected string, got &value.valueUnstructured{Value:[]interface {}{"b"}}',
        ),
        ({"plain": [1]}, ".spec.plain[0]: expected string, got &value.valueUnstructured{Value:1}"),
        (
            {"n": True, "s": "", "set": {}},
            "errors:\n  .spec.n: expected numeric (int or float), got bool\n  .spec.set: expected list, got &{map[]}",
        ),
    ],
)
def test_a_configuration_that_does_not_fit_is_rejected_with_upstream_s_text(spec: Any, message: str) -> None:
    with pytest.raises(StatusError) as raised:
        MANAGER.apply(None, widget(spec), "m", force=False)
    assert raised.value.code == 400
    assert raised.value.message == f"failed to create typed patch object (/w; example.com/v1, Kind=Widget): {message}"


MISFIT = "failed to create typed patch object (/w; example.com/v1, Kind=Widget): "


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "invalid object type: /, Kind="),
        ({"apiVersion": "example.com/v2", "kind": "Widget"}, "invalid object type: example.com/v2, Kind=Widget"),
        ({"apiVersion": "a/b/c", "kind": "Widget"}, "invalid object type: /, Kind="),
        (widget(managedFields=[]), "metadata.managedFields must be nil"),
        (widget(managedFields=[{"manager": "m"}]), "metadata.managedFields must be nil"),
        (widget(managedFields="x"), f"{MISFIT}.metadata.managedFields: expected list, got &{{x}}"),
        (widget(managedFields=[1]), f"{MISFIT}.metadata.managedFields[0]: expected map, got &{{1}}"),
    ],
)
def test_a_configuration_of_another_kind_is_rejected(body: Any, message: str) -> None:
    with pytest.raises(StatusError) as raised:
        MANAGER.apply(None, body, "m", force=False)
    assert (raised.value.code, raised.value.message) == (400, message)


def test_an_update_that_changes_nothing_keeps_the_time() -> None:
    live = stored(MANAGER.update(None, widget({"n": 1}), "m"))
    live["metadata"]["managedFields"][0]["time"] = "2001-01-01T00:00:00Z"
    assert MANAGER.update(live, widget({"n": 1}), "m")["metadata"]["managedFields"] == live["metadata"]["managedFields"]
    changed = MANAGER.update(live, widget({"n": 2}), "m")
    assert changed["metadata"]["managedFields"][0]["time"] > "2001-01-01T00:00:00Z"


def test_a_version_that_is_gone_takes_its_managers_along() -> None:
    live = stored(MANAGER.update(None, widget({"n": 1}), "m"))
    live["metadata"]["managedFields"][0]["apiVersion"] = "example.com/v0"
    assert owned(MANAGER.update(live, widget({"n": 1, "s": "x"}), "n")) == {"n": {"f:spec": {"f:s": {}}}}


def test_an_apply_fails_where_the_result_does_not_fit_another_manager_s_version() -> None:
    older = node("object", properties={"spec": node("object", properties={"n": INTEGER})})
    newer = node("object", properties={"spec": node("object", properties={"n": INTEGER, "s": STRING})})
    nodes = {"example.com/v1": older, "example.com/v2": newer}

    def renamed(obj: Object, version: str) -> Object:
        return {**obj, "apiVersion": version}

    of_v1 = FieldManager(KIND, nodes.get, renamed, thorough=True)
    of_v2 = FieldManager(KIND._replace(version="v2"), nodes.get, renamed, hub="example.com/v1", thorough=True)
    live = stored(of_v1.update(None, widget({"n": 1}), "m"))
    with pytest.raises(StatusError, match=r"^failed to convert new object: \.spec\.s: field not declared in schema$"):
        of_v2.apply(live, {**widget({"s": "x"}), "apiVersion": "example.com/v2"}, "a", force=False)


def _of_changed_schema() -> tuple[FieldManager, Object]:
    """Return the field manager of a schema in which `a` is an integer, and an object in which it is a string."""
    before = node("object", properties={"spec": node("object", properties={"a": STRING, "c": STRING})})
    after = node("object", properties={"spec": node("object", properties={"a": INTEGER, "c": STRING})})
    live = FieldManager(KIND, lambda _: before, thorough=True).apply(
        None, widget({"a": "x", "c": "x"}), "m", force=False
    )
    return FieldManager(KIND, lambda _: after, thorough=True), stored(live)


def test_an_apply_fails_where_the_live_object_does_not_fit_a_changed_schema() -> None:
    manager, live = _of_changed_schema()
    text = (
        "failed to create typed live object (/w; example.com/v1, Kind=Widget): "
        ".spec.a: expected numeric (int or float), got string"
    )
    for spec in ({"a": 1}, {"c": "x"}, {"c": "y"}):
        with pytest.raises(StatusError) as rejection:
            manager.apply(live, widget(spec), "m", force=True)
        assert rejection.value.message == text


def test_an_update_that_makes_the_live_object_fit_a_changed_schema_keeps_the_managed_fields() -> None:
    manager, live = _of_changed_schema()
    repaired = manager.update(live, widget({"a": 1, "c": "y"}), "u")
    assert repaired["metadata"]["managedFields"] == live["metadata"]["managedFields"]
    changed = manager.update(stored(repaired), widget({"a": 1, "c": "z"}), "u")
    assert owned(changed) == {"m": {"f:spec": {"f:a": {}}}, "u": {"f:spec": {"f:c": {}}}}


def test_managers_of_members_own_a_list_that_becomes_atomic() -> None:
    live = stored(MANAGER.apply(None, widget({"map": {"a": "1"}}), "m", force=False))
    spec = node(
        "object", properties={"map": node("object", additional_properties=STRING, map_type="atomic"), "n": INTEGER}
    )
    later = FieldManager(KIND, lambda _: node("object", properties={"spec": spec}))
    assert owned(later.update(live, widget({"map": {"a": "1"}, "n": 1}), "u")) == {
        "m": {"f:spec": {"f:map": {}}},
        "u": {"f:spec": {"f:n": {}}},
    }


ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


def test_fields_of_kubectls_client_side_apply_move_to_its_server_side_apply() -> None:
    applied = '{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"n":1,"s":"a"}}\n'
    live = stored(
        MANAGER.update(None, widget({"n": 1, "s": "a"}, annotations={ANNOTATION: applied}), "kubectl-client-side-apply")
    )
    result = MANAGER.apply(live, widget({"n": 2, "s": "<b>"}), "kubectl", force=False)
    assert owned(result)["kubectl"] == {"f:spec": {"f:n": {}, "f:s": {}}}
    assert result["metadata"]["annotations"][ANNOTATION] == (
        '{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"n":2,"s":"\\u003cb\\u003e"}}\n'
    )
    elsewhere = MANAGER.update(live, {**live, "spec": {"n": 5, "s": "a"}}, "other")
    with pytest.raises(StatusError, match=r'conflict with "other" using example\.com/v1: \.spec\.n'):
        MANAGER.apply(elsewhere, widget({"n": 2, "s": "b"}), "kubectl", force=False)


def test_replicas_change_hands_through_scale() -> None:
    entry = {
        "manager": "m",
        "operation": "Apply",
        "apiVersion": "example.com/v1",
        "time": "2001-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:n": {}, "f:s": {}}},
    }
    handler = ScaleHandler([entry], "example.com/v1", {"example.com/v1": ("spec", "n")})
    [of_scale] = handler.to_subresource()
    assert (of_scale["apiVersion"], of_scale["fieldsV1"]) == ("autoscaling/v1", {"f:spec": {"f:replicas": {}}})
    assert handler.to_parent([of_scale]) == [entry]
    taken = {**of_scale, "manager": "u", "operation": "Update", "subresource": "scale"}
    assert handler.to_parent([taken]) == [
        {**entry, "fieldsV1": {"f:spec": {"f:s": {}}}},
        {
            "manager": "u",
            "operation": "Update",
            "apiVersion": "example.com/v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:n": {}}},
            "subresource": "scale",
        },
    ]


TEXT = st.sampled_from(["", "a", "b", "<c>"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT,
    lambda x: st.lists(x, max_size=2) | st.dictionaries(TEXT, x, max_size=2),
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "n": st.integers(0, 3),
        "s": TEXT,
        "plain": st.lists(TEXT, max_size=3),
        "set": st.lists(TEXT, max_size=3, unique=True),
        "ports": st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["TCP", "UDP"])), unique=True, max_size=3).map(
            lambda pairs: [{"port": port, "protocol": protocol} for port, protocol in pairs]
        ),
        "map": st.dictionaries(TEXT, TEXT, max_size=3),
        "atomic": st.dictionaries(TEXT, TEXT, max_size=2),
        "free": st.dictionaries(TEXT, JSON, max_size=3),
        "intOrString": st.integers(0, 3) | TEXT,
    },
)


@given(SPECS, SPECS)
def test_applying_twice_is_applying_once(live_spec: Any, spec: Any) -> None:
    live = stored(MANAGER.update(None, widget(live_spec), "u"))
    before = copy.deepcopy((live, spec))
    once = MANAGER.apply(live, widget(spec), "m", force=True)
    again = MANAGER.apply(once, widget(spec), "m", force=False)
    assert again == once
    assert (live, spec) == before
    for name in ("n", "s", "plain", "atomic"):
        if name in spec:
            assert once["spec"][name] == spec[name]


@given(SPECS, SPECS, SPECS)
def test_one_manager_s_applies_leave_the_last_one_s_object(first: Any, second: Any, third: Any) -> None:
    # A label keeps the manager in the list. Otherwise a manager without fields is removed, and applies are no longer
    # tracked.
    live = stored(MANAGER.apply(None, widget(first, labels={"a": "b"}), "m", force=False))
    for spec in (second, third):
        live = MANAGER.apply(live, widget(spec, labels={"a": "b"}), "m", force=False)
    direct = MANAGER.apply(None, widget(third, labels={"a": "b"}), "m", force=False)
    assert owned(live) == owned(direct)


@given(SPECS, SPECS)
def test_an_update_owns_its_changes_and_the_others_keep_the_rest(first: Any, second: Any) -> None:
    live = stored(MANAGER.update(None, widget(first), "one"))
    result = MANAGER.update(live, widget(second), "two")
    direct = stored(MANAGER.update(None, widget(second), "one"))
    for left, right in ((result, direct), (direct, result)):
        names = {name for fields in owned(left).values() for name in fields.get("f:spec", {}) if name != "."}
        assert names <= {name for fields in owned(right).values() for name in fields.get("f:spec", {})}
