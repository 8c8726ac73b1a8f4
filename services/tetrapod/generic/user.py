"""Who makes a request (upstream: k8s.io/apiserver/pkg/authentication/user)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class UserInfo:
    """Upstream: user.DefaultInfo. Keys of `extra` are in lower case where they came by a header."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict, hash=False)


ALL_AUTHENTICATED: Final = "system:authenticated"
ALL_UNAUTHENTICATED: Final = "system:unauthenticated"
SYSTEM_MASTERS: Final = "system:masters"
ANONYMOUS: Final = UserInfo("system:anonymous", groups=(ALL_UNAUTHENTICATED,))
LOOPBACK: Final = UserInfo("system:apiserver", groups=(SYSTEM_MASTERS, ALL_AUTHENTICATED))
"""The identity of the server's own controllers."""
