"""Helpers for keys of the store."""

from __future__ import annotations


def is_key(text: str) -> bool:
    """Return whether `text` can be a key or a prefix of keys, that is whether it can be encoded as UTF-8.

    Keys are UTF-8, but a request path may contain arbitrary bytes, which Python represents as surrogates.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def prefix_end(prefix: str) -> str:
    """Return the first key after all keys that begin with `prefix`, which must not be empty."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)
