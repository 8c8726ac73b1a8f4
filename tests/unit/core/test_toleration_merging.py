"""Checks that tolerations covered by another toleration are removed."""

from __future__ import annotations

from tetrapod.core.admission.toleration_merging import merged

ANY = {"operator": "Exists"}
ONE = {"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute", "tolerationSeconds": 5}


def test_the_wider_one_stays_wherever_it_stands() -> None:
    assert merged([ONE], [ANY]) == [ANY]
    assert merged([ANY], [ONE]) == [ANY]


def test_of_equal_ones_the_first_stays() -> None:
    assert merged([ONE], [dict(ONE)]) == [ONE]


def test_a_longer_time_covers_a_shorter_one() -> None:
    longer = {**ONE, "tolerationSeconds": 9}
    assert merged([ONE], [longer]) == [longer]


def test_others_stay_side_by_side() -> None:
    other = {"key": "b", "operator": "Exists"}
    assert merged([ONE], [other]) == [ONE, other]
