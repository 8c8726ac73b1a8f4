"""`Review`: a review to be sent to a webhook for admission or conversion, and the kind of the expected response."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tetrapod.generic.webhook.responses import Expected

SUPPORTED: Final = ("v1", "v1beta1")
"""The supported versions of reviews."""


@dataclass(frozen=True, slots=True)
class Review:
    """A review. `version` is its API version, `body` its JSON."""

    uid: str
    version: str
    body: bytes
    expected: Expected


def supported_version(versions: Sequence[str]) -> str | None:
    """Return the first of a webhook's versions that is supported, or None."""
    return next((version for version in versions if version in SUPPORTED), None)
