"""Generated names: `metadata.generateName` and five random characters.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/names/generate.go
"""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.random_bits import random_choices

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Without vowels and similar characters, so that no words result (k8s.io/apimachinery/pkg/util/rand)."""
_RANDOM_LENGTH: Final = 5
_MAX_BASE_LENGTH: Final = 63 - _RANDOM_LENGTH


def random_suffix(length: int = _RANDOM_LENGTH) -> str:
    """Return `length` random characters for a generated name. As upstream's, they are not unpredictable."""
    return "".join(random_choices(_ALPHABET, k=length))


def generate_name(base: str) -> str:
    """Return `base`, cut to 58 characters, with a random suffix of 5; the result fits into a DNS label."""
    return base[:_MAX_BASE_LENGTH] + random_suffix()
