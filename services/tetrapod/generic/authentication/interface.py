"""The interfaces of authenticators. The aggregator combines several of them; see `union.py`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from tetrapod.generic.http.request import Request
from tetrapod.machinery.user import UserInfo

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class Authenticated(NamedTuple):
    """An authenticated user, and those of the requested audiences that the credential is valid for.

    `annotations` (of the audit event) and `warnings` (for the client) are about the credential. Upstream: both are
    cached by token/cache/cached_token_authenticator.go.
    """

    user: UserInfo
    audiences: tuple[str, ...] = ()
    annotations: Mapping[str, str] = _NONE
    warnings: tuple[str, ...] = ()


class Rejected:
    """The result of an authenticator for an invalid credential, after which others are still tried.

    A value costs less than an exception: the front proxy's authenticator rejects the client certificate of each user's
    request.
    """

    __slots__ = ()


REJECTED: Final = Rejected()


class RequestAuthenticator(Protocol):
    """An authenticator of requests.

    It returns None for other kinds of credentials and raises StatusError 401 for invalid ones.
    """

    async def authenticate(self, request: Request) -> Authenticated | None: ...


class AlternativeAuthenticator(Protocol):
    """An authenticator of one kind of credential, which is combined with others.

    It returns None for other kinds of credentials, `REJECTED` for an invalid credential, and raises StatusError only if
    it cannot decide.
    """

    async def authenticate(self, request: Request) -> Authenticated | Rejected | None: ...


class TokenAuthenticator(Protocol):
    """An authenticator of bearer tokens.

    It returns None for other kinds of tokens and raises InvalidToken for invalid ones.
    """

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None: ...


class InvalidToken(Exception):
    """A token that the authenticator rejects although it knows its kind; TokenReview shows the text."""
