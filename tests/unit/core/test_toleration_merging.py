"""Checks that tolerations covered by another toleration are removed."""

from __future__ import annotations

from tetrapod.core.admission.toleration_merging import merged

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
