"""Tests of label and field selectors: parsing, matching and errors as upstream's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.generic.registry.predicate import _conditions
from tetrapod.machinery import field_selectors, labels
from tetrapod.machinery.field_selectors import FieldRequirement
from tetrapod.machinery.labels.selectors import MANY, Conditions


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("env in prod", "unable to parse requirement: found 'prod' expected: '('"),
        ("env in (a", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("env like (a)", "unable to parse requirement: found 'like', expected: in, notin, =, ==, !=, gt, lt"),
        ("=prod", "found '=', expected: !, identifier, or 'end of string'"),
        ("env=prod,", "found '', expected: identifier after ','"),
        ("env=a=b", "found '=', expected: ',' or 'end of string'"),
        ("!env=a", "found '=', expected: ',' or 'end of string'"),
        (
            "n>ten",
            (
                "unable to parse requirement: values[0]: Invalid value: \"ten\": for 'Gt', 'Lt' operators, "
                "the value must be an integer"
            ),
        ),
    ],
)
def test_label_selector_errors(text: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        labels.parse(text)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("text", "matching", "other"),
    [
        ("a=b", {"a": "b"}, {"a": "c"}),
        ("a!=b", {}, {"a": "b"}),
        ("a in (b, c)", {"a": "c"}, {}),
        ("a notin (b,c)", {"a": "d"}, {"a": "b"}),
        ("a", {"a": ""}, {"b": ""}),
        ("!a", {}, {"a": ""}),
        ("a>5", {"a": "6"}, {"a": "x"}),
        ("a<5,b", {"a": "-1", "b": "x"}, {"a": "-1"}),
        ("a in ()", {"a": ""}, {"a": "x"}),
        ("in in (in,notin)", {"in": "notin"}, {"in": "x"}),
    ],
)
def test_label_selectors_match(text: str, matching: dict[str, str], other: dict[str, str]) -> None:
    selector = labels.parse(text)
    assert selector.matches(matching)
    assert not selector.matches(other)


@given(st.text(alphabet="ab=!(),<> inot/", max_size=20))
def test_a_parsed_label_selector_prints_as_itself(text: str) -> None:
    try:
        selector = labels.parse(text)
    except ValueError:
        return
    assert labels.parse(str(selector)) == selector


def test_no_selector_object_selects_nothing_an_empty_one_everything() -> None:
    assert not labels.from_label_selector(None).matches({})
    assert labels.from_label_selector({}).matches({"a": "b"})
    selector = labels.from_label_selector(
        {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}
    )
    assert str(selector) == "a=b,c"
    with pytest.raises(ValueError, match='"Near" is not a valid label selector operator'):
        labels.from_label_selector({"matchExpressions": [{"key": "c", "operator": "Near"}]})


def test_selector_objects_are_validated() -> None:
    expressions = [
        {"key": "a", "operator": "In"},
        {"key": "a", "operator": "Exists", "values": ["x"]},
        {"key": "a", "operator": "Near"},
    ]
    assert [str(e) for e in labels.validate_label_selector({"matchExpressions": expressions}, "spec.selector")] == [
        (
            "spec.selector.matchExpressions[0].values: Required value: must be specified when "
            "`operator` is 'In' or 'NotIn'"
        ),
        (
            "spec.selector.matchExpressions[1].values: Forbidden: may not be specified when "
            "`operator` is 'Exists' or 'DoesNotExist'"
        ),
        'spec.selector.matchExpressions[2].operator: Invalid value: "Near": not a valid selector operator',
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("metadata.name in (a,b)", "invalid selector: 'metadata.name in (a,b)'; can't understand 'b)'"),
        ("metadata.name=a\\b", "invalid field selector: invalid escape sequence: \\b"),
    ],
)
def test_field_selector_errors(text: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        field_selectors.parse(text)
    assert str(raised.value) == message


def test_field_selectors_match() -> None:
    selector = field_selectors.parse("metadata.name==x,,status.phase!=Running")
    assert selector.matches({"metadata.name": "x"})
    assert not selector.matches({"metadata.name": "x", "status.phase": "Running"})
    assert field_selectors.parse("spec.nodeName=").matches({})
    assert field_selectors.parse(",,").empty


@given(st.text(alphabet="ab\\,=", max_size=8))
def test_escaped_field_values_come_back(value: str) -> None:
    assert field_selectors.parse(f"f={field_selectors.escape(value)}").requires_exact_match("f") == value


_KEYS = st.sampled_from(["a", "b", "c"])
_VALUES = st.sampled_from(["", "1", "2", "x", "-5"])
_REQUIREMENTS = st.one_of(
    st.builds(labels.Requirement, _KEYS, st.sampled_from(["exists", "!"])),
    st.builds(
        lambda key, op, value: labels.Requirement(key, op, (value,)),
        _KEYS,
        st.sampled_from(["=", "==", "!=", "gt", "lt"]),
        _VALUES,
    ),
    st.builds(
        labels.Requirement,
        _KEYS,
        st.sampled_from(["in", "notin"]),
        st.lists(_VALUES, min_size=1, max_size=3),
    ),
)


@given(st.lists(_REQUIREMENTS, max_size=5), st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), _VALUES))
def test_many_requirements_match_like_each_of_them(
    requirements: list[labels.Requirement], values: dict[str, str]
) -> None:
    each = all(requirement.matches(values) for requirement in requirements)
    assert Conditions(requirements).match(values) is each
    assert labels.Selector(requirements * MANY).matches(values) is each


_TERMS = st.builds(
    FieldRequirement,
    st.sampled_from(["metadata.name", "metadata.namespace", "status.phase"]),
    st.sampled_from(["=", "!="]),
    st.sampled_from(["", "a", "b"]),
)


@given(
    st.lists(_TERMS, max_size=5),
    st.dictionaries(st.sampled_from(["metadata.name", "status.phase"]), st.sampled_from(["", "a", "b"])),
)
def test_the_terms_of_a_field_selector_match_like_each_of_them(
    terms: list[FieldRequirement], values: dict[str, str]
) -> None:
    conditions = _conditions(terms)
    assert len(conditions) <= 3
    each = field_selectors.FieldSelector(terms).matches(values)
    assert all(condition.matches(values.get(condition.field, "")) for condition in conditions) is each


def test_matching_takes_no_longer_the_more_requirements_a_selector_has() -> None:
    class Counted(dict[str, str]):
        reads = 0

        def get(self, *arguments: Any) -> Any:
            Counted.reads += 1
            return super().get(*arguments)

        def __contains__(self, key: object) -> bool:
            Counted.reads += 1
            return super().__contains__(key)

    absent = labels.parse(",".join(f"!k{i}" for i in range(4000)))
    assert absent.matches(Counted(a="b"))
    different = labels.parse(",".join(f"a!=v{i}" for i in range(4000)))
    assert different.matches(Counted(a="b"))
    assert not different.matches(Counted(a="v7"))
    assert Counted.reads <= 10
