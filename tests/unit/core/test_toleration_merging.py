"""Checks that tolerations covered by another toleration are removed."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tetrapod.core.admission.toleration_merging import all_covered, merged

ANY = {"operator": "Exists"}
ONE = {"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute", "tolerationSeconds": 5}


def test_the_wider_toleration_is_kept_in_any_order() -> None:
    assert merged([ONE], [ANY]) == [ANY]
    assert merged([ANY], [ONE]) == [ANY]


def test_the_first_of_equal_tolerations_is_kept() -> None:
    assert merged([ONE], [dict(ONE)]) == [ONE]


def test_a_longer_time_covers_a_shorter_one() -> None:
    longer = {**ONE, "tolerationSeconds": 9}
    assert merged([ONE], [longer]) == [longer]


def test_unrelated_tolerations_are_kept() -> None:
    other = {"key": "b", "operator": "Exists"}
    assert merged([ONE], [other]) == [ONE, other]


TOLERATIONS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "key": st.sampled_from(["", "a", "b"]),
            "operator": st.sampled_from(["", "Equal", "Exists", "Lt"]),
            "value": st.sampled_from(["", "x", "y"]),
            "effect": st.sampled_from(["", "NoExecute", "NoSchedule"]),
            "tolerationSeconds": st.sampled_from([-1, 0, 5, 9]),
        },
    ),
    max_size=8,
)


def covers(wide: dict[str, Any], one: dict[str, Any]) -> bool:
    """Compare two tolerations as upstream does. Upstream: pkg/util/tolerations, isSuperset."""
    if wide == one:
        return True
    key, operator, effect = (wide.get(name) or "" for name in ("key", "operator", "effect"))
    if (one.get("key") or "") != key and (key or operator != "Exists"):
        return False
    if effect and (one.get("effect") or "") != effect:
        return False
    seconds, own = wide.get("tolerationSeconds"), one.get("tolerationSeconds")
    if effect == "NoExecute" and seconds is not None and (own is None or own > seconds):
        return False
    if operator in ("", "Equal"):
        return one.get("operator") == "Equal" and (one.get("value") or "") == (wide.get("value") or "")
    return operator == "Exists"


@given(TOLERATIONS, TOLERATIONS)
def test_the_result_is_that_of_comparing_all_pairs(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> None:
    tolerations, kept = [*first, *second], list[dict[str, Any]]()
    for i, toleration in enumerate(tolerations):
        later = [other for other in tolerations[i + 1 :] if other != toleration]
        if not any(covers(other, toleration) for other in [*kept, *later]):
            kept.append(toleration)
    assert merged(first, second) == kept
    assert all_covered(first, second) == all(any(covers(wide, one) for wide in second) for one in first)


def test_many_tolerations_are_merged_in_linear_time() -> None:
    compared = 0

    class Toleration(dict[str, Any]):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return super().__eq__(other)

        __hash__ = None

    many: list[dict[str, Any]] = [Toleration(key=f"k{i}", operator="Exists") for i in range(20_000)]
    assert len(merged(many, [{"key": "k", "operator": "Exists"}])) == 20_001
    assert compared < 10 * len(many)
