"""The user of a request.

Upstream: k8s.io/apiserver/pkg/authentication/user.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tetrapod.machinery.boundedcache import weigh


@dataclass(frozen=True, slots=True)
class UserInfo:
    """An authenticated or anonymous user. Keys of `extra` that came in a header are in lower case.

    Attributes:
        name: the user name, such as "system:serviceaccount:default:app".
        uid: the unique id, or "".
        groups: the names of the groups.
        extra: the values of each additional attribute.

    Upstream: user.DefaultInfo.
    """

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict, hash=False)


def weigh_user(user: UserInfo) -> int:
    """Return the approximate number of bytes that a user takes in memory, to bound caches."""
    return weigh((user.name, user.uid, user.groups, user.extra))


ALL_AUTHENTICATED: Final = "system:authenticated"
ALL_UNAUTHENTICATED: Final = "system:unauthenticated"
SYSTEM_MASTERS: Final = "system:masters"
SERVICES_GROUP: Final = "system:tetrapod:services"
"""The group of the four services, which certificates of users cannot grant."""
ANONYMOUS: Final = UserInfo("system:anonymous", groups=(ALL_UNAUTHENTICATED,))
LOOPBACK: Final = UserInfo("system:apiserver", groups=(SYSTEM_MASTERS, ALL_AUTHENTICATED))
"""The identity of the server's own controllers."""


def is_service(name: str) -> bool:
    """Return whether a user name is that of a server's own controllers or of one of the four services."""
    return name == LOOPBACK.name or name.startswith("system:tetrapod:")
