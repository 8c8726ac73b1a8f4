"""Every way to say who one is, asked in upstream's order: front proxy, client certificate, bearer token, anonymous.

Upstream: pkg/kubeapiserver/authenticator/config.go, k8s.io/apiserver/pkg/authentication/{request,token}/union and group. A
bad credential does not end the search, for another may be good; anonymous is reached only where none was given.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from tetrapod.generic.authentication.interface import Authenticated, InvalidToken, RequestAuthenticator, TokenAuthenticator
from tetrapod.generic.request import Request
from tetrapod.generic.user import ALL_AUTHENTICATED, ALL_UNAUTHENTICATED, ANONYMOUS, UserInfo
from tetrapod.machinery.status import StatusError


class UnionAuthenticator:
    """The first that recognizes the request decides; it then belongs to system:authenticated.

    `anonymous_paths`: where there are any, only requests for one of them may be anonymous.
    """

    def __init__(
        self, authenticators: Sequence[RequestAuthenticator], *, anonymous: bool = True, anonymous_paths: Collection[str] = ()
    ) -> None:
        self._authenticators = tuple(authenticators)
        self._anonymous, self._anonymous_paths = anonymous, frozenset(anonymous_paths)

    async def authenticate(self, request: Request) -> Authenticated | None:
        bad: StatusError | None = None
        for authenticator in self._authenticators:
            try:
                result = await authenticator.authenticate(request)
            except StatusError as error:
                bad = bad or error
                continue
            if result is not None:
                user = with_authenticated_group(result.user)
                return Authenticated(user, result.audiences, result.annotations, result.warnings)
        if bad is not None:
            raise bad
        allowed = self._anonymous and (not self._anonymous_paths or request.path in self._anonymous_paths)
        return Authenticated(ANONYMOUS) if allowed else None


def with_authenticated_group(user: UserInfo) -> UserInfo:
    if user.name == ANONYMOUS.name or ALL_AUTHENTICATED in user.groups or ALL_UNAUTHENTICATED in user.groups:
        return user
    if user.extra:
        return UserInfo(user.name, user.uid, (*user.groups, ALL_AUTHENTICATED), user.extra)
    return _member(user.name, user.uid, user.groups)


@lru_cache(1024)
def _member(name: str, uid: str, groups: tuple[str, ...]) -> UserInfo:
    return UserInfo(name, uid, (*groups, ALL_AUTHENTICATED))


class UnionTokenAuthenticator:
    """Raises InvalidToken with every complaint where no authenticator accepts a token and some knew its kind."""

    def __init__(self, authenticators: Sequence[TokenAuthenticator]) -> None:
        self._authenticators = tuple(authenticators)

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        complaints: list[str] = []
        for authenticator in self._authenticators:
            try:
                result = await authenticator.authenticate_token(token, audiences)
            except InvalidToken as error:
                complaints.append(str(error))
                continue
            if result is not None:
                return result
        if complaints:
            raise InvalidToken(", ".join(dict.fromkeys(complaints)))
        return None
