"""`Question`: a review on its way to a webhook, and what is expected back; of admission and of conversion alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tetrapod.generic.webhook.answers import Expected

KNOWN: Final = ("v1", "v1beta1")
"""Versions of reviews."""


@dataclass(frozen=True, slots=True)
class Question:
    """`version` is that of the review, `body` its JSON."""

    uid: str
    version: str
    body: bytes
    expected: Expected


def understood(versions: Sequence[str]) -> str | None:
    """The first version of reviews that a webhook understands, in its order, and we do."""
    return next((version for version in versions if version in KNOWN), None)
