"""Arithmetic of keys: where a prefix ends."""

from __future__ import annotations


def prefix_end(prefix: str) -> str:
    """The first key after all keys that begin with `prefix`."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)
