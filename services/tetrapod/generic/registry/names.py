"""Generated names: `metadata.generateName` and five random characters (upstream: k8s.io/apiserver/pkg/storage/names)."""

from __future__ import annotations

import secrets
from typing import Final

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Without vowels and look-alikes, so that no words come out (k8s.io/apimachinery/pkg/util/rand)."""
_RANDOM_LENGTH: Final = 5
_MAX_BASE_LENGTH: Final = 63 - _RANDOM_LENGTH


def random_suffix(length: int = _RANDOM_LENGTH) -> str:
    choice = secrets.choice
    return "".join([choice(_ALPHABET) for _ in range(length)])


def generate_name(base: str) -> str:
    """`base`, cut so that the whole fits a DNS label, and a suffix."""
    return base[:_MAX_BASE_LENGTH] + random_suffix()
