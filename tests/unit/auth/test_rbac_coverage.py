"""Tests of missing rights, compared with upstream's algorithm, and of rules with too many rights to enumerate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.auth.rbac.coverage import TooComplexError, first_missing, missing_rights
from tetrapod.auth.rbac.descriptions import compact, describe
from tetrapod.auth.rbac.escalation import MAX_LISTED, MAX_LISTED_CHARACTERS, missing_text

PlainRule = dict[str, list[str]]

ADMIN: PlainRule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}


def subsets(*texts: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(texts), max_size=4)  # with repetitions, and empty


rules = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "verbs": subsets("get", "list", "watch", "*"),
            "apiGroups": subsets("", "apps", "batch", "*"),
            "resources": subsets("pods", "pods/log", "jobs/log", "*/log", "*/*", "*"),
            "resourceNames": subsets("a", "b"),
            "nonResourceURLs": subsets("/a", "/a/", "/a/b", "/a*", "/a/**", "*", "/*/b"),
        },
    ),
    max_size=5,
)


def break_down(rule: PlainRule) -> Iterator[PlainRule]:
    """Upstream's BreakdownRule."""
    for group in rule.get("apiGroups", ()):
        for resource in rule.get("resources", ()):
            for verb in rule.get("verbs", ()):
                right = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                if not rule.get("resourceNames"):
                    yield right
                for name in rule.get("resourceNames", ()):
                    yield {**right, "resourceNames": [name]}
    for url in rule.get("nonResourceURLs", ()):
        for verb in rule.get("verbs", ()):
            yield {"nonResourceURLs": [url], "verbs": [verb]}


def covers(owner: PlainRule, right: PlainRule) -> bool:
    """Upstream's ruleCovers."""

    def has_all(key: str, *, star: bool = True) -> bool:
        have = owner.get(key, [])
        return (star and "*" in have) or all(value in have for value in right.get(key, ()))

    def resource(wanted: str) -> bool:
        have = owner.get("resources", [])
        return wanted in have or "*" in have or ("/" in wanted and "*/" + wanted.split("/", 1)[1] in have)

    def url(wanted: str) -> bool:
        return any(
            o == wanted or (o.endswith("*") and wanted.startswith(o.rstrip("*")))
            for o in owner.get("nonResourceURLs", ())
        )

    names = not owner.get("resourceNames") or (
        bool(right.get("resourceNames")) and has_all("resourceNames", star=False)
    )
    return (
        has_all("verbs")
        and has_all("apiGroups")
        and all(map(resource, right.get("resources", ())))
        and all(map(url, right.get("nonResourceURLs", ())))
        and names
    )


@given(rules, rules)
def test_missing_rights_are_those_of_upstream_in_its_order(held: list[PlainRule], granted: list[PlainRule]) -> None:
    missing = missing_rights(held, granted)
    expected = [
        right for rule in granted for right in break_down(rule) if not any(covers(owner, right) for owner in held)
    ]
    assert list(missing) == expected
    assert missing.total == len(expected)
    assert missing_text(held, granted) == "\n".join(sorted({describe(rule) for rule in compact(expected)}))


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{i}" for i in range(count)]


def large_rule(count: int, **more: list[str]) -> PlainRule:
    return {"apiGroups": names("g", count), "resources": names("r", count), "verbs": names("v", count), **more}


@pytest.mark.parametrize("held", [[], [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]])
def test_a_rule_of_many_rights_is_rejected_with_a_bounded_text(held: list[PlainRule]) -> None:
    text = missing_text(held, [large_rule(3_000, resourceNames=names("n", 3_000))])
    assert text.endswith(f"\nand {3_000**4 - MAX_LISTED} more")
    assert len(text) < MAX_LISTED_CHARACTERS * 2


def test_long_values_are_not_repeated_in_the_text() -> None:
    text = missing_text([], [{"apiGroups": ["g" * 100_000], "resources": names("r", 100), "verbs": names("v", 100)}])
    assert len(text) < 2 * MAX_LISTED_CHARACTERS
    assert text.endswith("and 9999 more")


def test_many_rights_that_are_held_in_parts_are_covered() -> None:
    granted = large_rule(300)
    held = [{**granted, "verbs": [verb]} for verb in granted["verbs"]] + [
        {**granted, "apiGroups": [g]} for g in granted["apiGroups"]
    ]
    assert not missing_rights(held, [granted]).total
    assert not missing_rights([ADMIN], [large_rule(3_000)] * 100).total
    del held[7], held[308]
    assert missing_rights(held, [granted]).total == 300


def test_a_single_missing_right_is_found_among_millions() -> None:
    granted = large_rule(200)
    held = [{**granted, key: listed[:77] + listed[78:]} for key, listed in granted.items()]
    assert list(missing_rights(held, [granted])) == [{"apiGroups": ["g77"], "resources": ["r77"], "verbs": ["v77"]}]


def test_rules_that_take_too_long_to_compare_count_as_not_covered() -> None:
    keys = ("apiGroups", "resources", "verbs", "resourceNames")
    granted: PlainRule = {key: names(key, 400) for key in keys}
    held: list[Any] = [
        {**granted, key: [v for i, v in enumerate(granted[key]) if i >> bit & 1]} for bit in range(9) for key in keys
    ]
    held += [
        {**granted, key: [v for i, v in enumerate(granted[key]) if i * 7919 % p]}
        for p in (2, 3, 5, 7, 11, 13)
        for key in keys
    ]
    with pytest.raises(TooComplexError):
        missing_rights(held, [granted], max_steps=1_000)
    assert missing_text(held, [granted])


def test_listing_missing_rights_ends_with_the_steps() -> None:
    granted = large_rule(100)
    assert len(first_missing(missing_rights([], [granted], max_steps=1_000), 5_000, 1_000_000)) < 1_000
