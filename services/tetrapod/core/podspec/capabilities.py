"""The process-wide setting `--allow-privileged`.

It is global, as upstream's pkg/capabilities, because the validation of every pod and pod template needs it.
`CoreService` sets it once, before serving.
"""

from __future__ import annotations

_privileged = True


def set_up(*, privileged: bool) -> None:
    """Set whether containers may be privileged, for the whole process."""
    global _privileged
    _privileged = privileged


def privileged_allowed() -> bool:
    """Return whether containers may be privileged; True until `set_up` is called."""
    return _privileged
