"""What the registry, strategies and admission know of the request that they serve."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tetrapod.generic.authentication.user import LOOPBACK, UserInfo

LARGE: Final = 128 * 1024
"""Bytes of an object from which on it is decoded and validated in a thread: others must not wait for it."""


@dataclass(slots=True)
class Context:
    user: UserInfo = LOOPBACK
    namespace: str = ""
    version: str = ""  # of the request: "v1"
    subresource: str = ""
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    large: bool = False
