"""`Outcome`: the answer to a message."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Outcome:
    """The answers to a message. The status is 0 if the server closed the connection, or did not answer in time."""

    status: int = 0
    seconds: float = 0.0
    received: int = 0
    body: bytes = field(default=b"", repr=False)
