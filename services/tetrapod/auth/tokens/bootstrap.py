"""The authenticator of bootstrap tokens: `id.secret`, stored in secrets of kube-system.

Upstream: plugin/pkg/auth/authenticator/token/bootstrap/bootstrap.go, TokenAuthenticator.
"""

from __future__ import annotations

import hmac
import logging
import re
import time
from collections.abc import Callable, Sequence
from typing import Final

from tetrapod.auth.tokens.bound_objects import SECRETS, Objects
from tetrapod.auth.tokens.serviceaccounts import secret_value
from tetrapod.generic.authentication.interface import Authenticated
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.timestamps import parse
from tetrapod.machinery.user import UserInfo

log = logging.getLogger(__name__)

SECRET_TYPE: Final = "bootstrap.kubernetes.io/token"
DEFAULT_GROUP: Final = "system:bootstrappers"
_token = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})", re.ASCII).fullmatch
_group = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]", re.ASCII).fullmatch


class BootstrapTokenAuthenticator:
    """The authenticator of bootstrap tokens.

    Unusable tokens are treated like unknown ones; only the log gives the reason.

    Args:
        objects: reads Secrets.
        audiences: the audiences of this server.
        clock: returns seconds since the epoch.
    """

    def __init__(self, objects: Objects, audiences: Sequence[str], *, clock: Callable[[], float] = time.time) -> None:
        self._objects, self._audiences, self._clock = objects, tuple(audiences), clock

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        parts = _token(token)
        if parts is None:
            return None
        accepted = tuple(a for a in audiences or self._audiences if a in self._audiences)
        token_id, token_secret = parts.groups()
        secret = await self._objects.find(SECRETS, "kube-system", f"bootstrap-token-{token_id}")
        if secret is None or not accepted:
            return None
        if not hmac.compare_digest(secret_value(secret, "token-secret"), token_secret.encode()):
            return None
        reason = unusable(secret, token_id, self._clock())
        groups = extra_groups(secret)
        if reason or groups is None:
            log.debug("bootstrap token %s cannot be used: %s", token_id, reason or "its auth-extra-groups are invalid")
            return None
        return Authenticated(UserInfo(f"system:bootstrap:{token_id}", groups=(DEFAULT_GROUP, *groups)), accepted)


def unusable(secret: Object, token_id: str, now: float) -> str:
    """Return why the bootstrap token in the Secret cannot authenticate, or "" if it can.

    The token's secret part is not checked.

    Args:
        token_id: the id in the presented token.
        now: seconds since the epoch.
    """
    if secret["metadata"].get("deletionTimestamp"):
        return "it is being deleted"
    if secret.get("type") != SECRET_TYPE:
        return "its secret is of another type"
    if secret_value(secret, "token-id") != token_id.encode():
        return "its id is another"
    if secret_value(secret, "usage-bootstrap-authentication") != b"true":
        return "it is not meant for authentication"
    expiration = secret_value(secret, "expiration")
    if expiration:
        try:
            if parse(expiration.decode()).timestamp() < now:
                return "it has expired"
        except ValueError:
            return "its expiration cannot be read"
    return ""


def extra_groups(secret: Object) -> list[str] | None:
    """Return the sorted groups in auth-extra-groups of the Secret, or None if one of them is not allowed.

    The result is [] if the value is unset.
    """
    text = secret_value(secret, "auth-extra-groups").decode("utf-8", "replace")
    groups = sorted(set(text.split(","))) if text else []
    return groups if all(_group(group) for group in groups) else None
