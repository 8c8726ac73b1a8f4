"""Declared rules: their errors, their order, and ratcheting."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from tetrapod.core.validation.declared import Field, Type, at_least, long_name, one_of, short_name, validate
from tetrapod.machinery.gvk import Object

ITEM: Final = Type({"name": Field((short_name,), required=True), "count": Field((at_least(1),))})
MODE: Final = Type({"one": Field(pointer=True), "other": Field(pointer=True)}, union=("one", "other"))
KIND: Final = Type(
    {
        "reference": Field((long_name,), immutable=True, pointer=True),
        "policy": Field((one_of("A", "B"),), required=True),
        "mode": Field(type=MODE, embedded=True),
        "once": Field(no_set=True, no_unset=True, no_modify=True),
        "gated": Field(gate="GenericWorkload"),
        "items": Field(items=ITEM, key="name", max_items=3, fixed_items=True),
    }
)
VALID: Final[Object] = {
    "reference": "a.b",
    "policy": "A",
    "mode": {"one": {}},
    "items": [{"name": "x", "count": 1}, {"name": "y"}],
}


def errors_of(new: Object, old: Object | None = None) -> list[str]:
    return [str(error) for error in validate(KIND, new, old, "spec", update=old is not None)]


def test_a_valid_object_has_no_errors() -> None:
    assert errors_of(VALID) == []


def test_all_errors_are_reported_in_the_order_of_the_fields() -> None:
    invalid = {
        "reference": "a b",
        "mode": {"one": {}, "other": {}},
        "gated": "x",
        "items": [{"name": "x", "count": -1}, {"name": "x"}, {}],
    }
    subdomain, *others = errors_of(invalid)
    assert subdomain.startswith('spec.reference: Invalid value: "a b": a lowercase RFC 1123 subdomain')
    assert others == [
        "spec.policy: Required value",
        'spec.mode: Invalid value: "{one, other}": must specify exactly one of: `one`, `other`',
        "spec.gated: Forbidden",
        'spec.items[1]: Duplicate value: {"name":"x"}',
        "spec.items[0].count: Invalid value: -1: must be greater than or equal to 1",
        "spec.items[2].name: Required value",
    ]


def test_a_list_that_is_too_long_is_not_examined_further() -> None:
    assert errors_of({**VALID, "items": [{}] * 4}) == ["spec.items: Too many: 4: must have at most 3 items"]


def test_a_union_without_a_member_is_an_error_even_if_its_struct_is_missing() -> None:
    assert errors_of({key: value for key, value in VALID.items() if key != "mode"}) == [
        'spec.mode: Invalid value: "": must specify one of: `one`, `other`'
    ]


def test_changes_that_an_update_may_not_make_are_rejected() -> None:
    changed = {**VALID, "reference": "c", "once": "x", "items": [{"name": "y"}, {"name": "z"}]}
    assert errors_of(changed, VALID) == [
        "spec.reference: Invalid value: null: field is immutable",
        "spec.once: Invalid value: null: field cannot be set once created",
        "spec.items[1]: Forbidden: item may not be added",
        "spec.items: Forbidden: item may not be removed",
    ]
    once = {**VALID, "once": "x"}
    assert errors_of(VALID, once) == ["spec.once: Invalid value: null: field cannot be cleared once set"]
    assert errors_of({**once, "once": "y"}, once) == [
        "spec.once: Invalid value: null: field cannot be modified once set"
    ]


def test_an_item_is_compared_with_the_stored_item_of_the_same_key() -> None:
    stored = {**VALID, "items": [{"name": "x", "count": -1}, {"name": "y", "count": -2}]}
    swapped = {**stored, "items": [{"name": "y", "count": -2}, {"name": "x", "count": -3}]}
    assert errors_of(swapped, stored) == ["spec.items[1].count: Invalid value: -3: must be greater than or equal to 1"]


OBJECTS: Final = st.fixed_dictionaries(
    {},
    optional={
        "reference": st.sampled_from(["", "a", "a b"]),
        "policy": st.sampled_from(["", "A", "C"]),
        "mode": st.dictionaries(st.sampled_from(["one", "other"]), st.just({})),
        "once": st.sampled_from(["", "x"]),
        "gated": st.sampled_from(["", "x"]),
        "items": st.lists(
            st.fixed_dictionaries({}, optional={"name": st.sampled_from(["", "x", "y"]), "count": st.integers(-1, 2)}),
            max_size=5,
        ),
    },
)


@given(OBJECTS)
def test_an_update_that_changes_nothing_is_always_valid(stored: dict[str, Any]) -> None:
    assert errors_of(stored, stored) == []


@given(OBJECTS, OBJECTS)
def test_fields_are_judged_alone(new: dict[str, Any], old: dict[str, Any]) -> None:
    together = errors_of(new, old)
    alone = [
        error
        for name in KIND.fields
        for error in (
            str(e)
            for e in validate(
                Type({name: KIND.fields[name]}),
                {k: v for k, v in new.items() if k == name},
                {k: v for k, v in old.items() if k == name},
                "spec",
                update=True,
            )
        )
    ]
    assert together == alone
