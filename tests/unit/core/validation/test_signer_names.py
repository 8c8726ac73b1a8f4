"""Tests of the names of signers."""

from __future__ import annotations

from tetrapod.core.validation.signer_names import signer_name


def test_only_the_first_invalid_part_of_a_signer_name_is_reported() -> None:
    assert [error.detail.partition(":")[0] for error in signer_name("A.B/c.-", "p")] == [
        'validating label "A"',
        'validating label "-"',
    ]
