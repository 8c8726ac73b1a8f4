"""Random UUIDs (version 4), such as the uids of objects. They cannot be predicted."""

from __future__ import annotations

import os
from typing import Final

_SIZE: Final = 16
_READ_AT_ONCE: Final = 256
"""UUIDs whose bytes are read together. A system call for each takes 1 to 3 µs."""
_VARIANTS: Final = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}

_unused: Final[list[bytes]] = []
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_unused.clear)  # otherwise the workers of a server would use the same bytes


def new_uid() -> str:
    """Return a new random UUID. Any thread may call it."""
    while True:
        try:
            return uuid_text(_unused.pop().hex())
        except IndexError:
            data = os.urandom(_READ_AT_ONCE * _SIZE)
            _unused.extend(data[start : start + _SIZE] for start in range(0, len(data), _SIZE))


def uuid_text(digits: str) -> str:
    """Return 32 random hexadecimal digits in the form of a UUID. Version and variant replace six of the bits."""
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANTS[digits[16]]}{digits[17:20]}-{digits[20:]}"
