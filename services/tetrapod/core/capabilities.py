"""What containers may be given at all: `--allow-privileged`.

One for the process, as upstream's (pkg/capabilities): every validation of a pod or a pod template asks, deep inside. Whoever assembles
core says it once, before it serves.
"""

from __future__ import annotations

_privileged = True


def set_up(*, privileged: bool) -> None:
    global _privileged
    _privileged = privileged


def privileged_allowed() -> bool:
    return _privileged
