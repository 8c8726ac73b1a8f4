"""The combination of authenticators in upstream's order: front proxy, client certificate, bearer token, anonymous.

After an invalid credential the next authenticators are still tried. A request is anonymous only if it has no
credentials.
Upstream: pkg/kubeapiserver/authenticator/config.go; k8s.io/apiserver/pkg/authentication/{request,token}/union, group
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from tetrapod.generic.authentication.bearer import INVALID_BEARER_TOKEN
from tetrapod.generic.authentication.interface import (
    AlternativeAuthenticator,
    Authenticated,
    InvalidToken,
    Rejected,
    TokenAuthenticator,
)
from tetrapod.generic.http.request import Request
from tetrapod.machinery.boundedcache import bounded
from tetrapod.machinery.failure import Failure
from tetrapod.machinery.status import StatusError, unauthorized
from tetrapod.machinery.user import ALL_AUTHENTICATED, ALL_UNAUTHENTICATED, ANONYMOUS, UserInfo

log = logging.getLogger(__name__)


class UnionAuthenticator:
    """A request authenticator that returns the result of the first of `authenticators` that accepts the request.

    The accepted user joins system:authenticated. If no authenticator accepts the request and one rejected a credential,
    all errors are logged, and the first StatusError is raised, else a 401. A request without credentials is anonymous.
    If anonymous requests are not allowed, the result for it is None.

    Args:
        authenticators: tried in this order.
        anonymous: whether anonymous requests are allowed.
        anonymous_paths: the only paths on which anonymous requests are allowed; empty for all paths.
    """

    def __init__(
        self,
        authenticators: Sequence[AlternativeAuthenticator],
        *,
        anonymous: bool = True,
        anonymous_paths: Collection[str] = (),
    ) -> None:
        self._authenticators = tuple(authenticators)
        self._anonymous, self._anonymous_paths = anonymous, frozenset(anonymous_paths)

    async def authenticate(self, request: Request) -> Authenticated | None:
        errors: list[str] = []
        first_failure: Failure[StatusError] | None = None
        for authenticator in self._authenticators:
            try:
                result = await authenticator.authenticate(request)
            except StatusError as error:
                first_failure = first_failure or Failure(error)
                errors.append(error.message)
                continue
            if result is None:
                continue
            if isinstance(result, Rejected):
                errors += result.errors
                continue
            user = with_authenticated_group(result.user)
            return result if user is result.user else Authenticated(user, *result[1:])
        if errors:
            log.error("Unable to authenticate the request", extra={"err": _aggregate(errors)})
            raise unauthorized() if first_failure is None else first_failure.error()
        allowed = self._anonymous and (not self._anonymous_paths or request.path in self._anonymous_paths)
        return Authenticated(ANONYMOUS) if allowed else None


def with_authenticated_group(user: UserInfo) -> UserInfo:
    """Return the user with system:authenticated as last group.

    A user that is anonymous or has the group is returned unchanged.

    A member of system:unauthenticated is returned unchanged too.
    """
    if user.name == ANONYMOUS.name or ALL_AUTHENTICATED in user.groups or ALL_UNAUTHENTICATED in user.groups:
        return user
    if user.extra:
        return UserInfo(user.name, user.uid, (*user.groups, ALL_AUTHENTICATED), user.extra)
    return _member((user.name, user.uid, user.groups))


@bounded(count=2048, size=4 << 20, largest=64 << 10)
def _member(user: tuple[str, str, tuple[str, ...]]) -> UserInfo:
    name, uid, groups = user
    return UserInfo(name, uid, (*groups, ALL_AUTHENTICATED))


def _aggregate(errors: Sequence[str]) -> str:
    """Return the text of several errors, each once.

    Upstream's first authenticator is that of the server's own token, whose error about bearer tokens comes first.
    Upstream: k8s.io/apimachinery/pkg/util/errors, aggregate.Error
    """
    distinct = sorted(dict.fromkeys(errors), key=lambda error: error != INVALID_BEARER_TOKEN)
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


class UnionTokenAuthenticator:
    """A token authenticator that returns the result of the first of `authenticators` that accepts the token.

    If none accepts it, InvalidToken is raised with the distinct errors of all; the result is None if there are no
    errors.
    """

    def __init__(self, authenticators: Sequence[TokenAuthenticator]) -> None:
        self._authenticators = tuple(authenticators)

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        errors: list[str] = []
        for authenticator in self._authenticators:
            try:
                result = await authenticator.authenticate_token(token, audiences)
            except InvalidToken as error:
                errors.append(str(error))
                continue
            if result is not None:
                return result
        if errors:
            raise InvalidToken(", ".join(dict.fromkeys(errors)))
        return None
