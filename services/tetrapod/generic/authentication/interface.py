"""The interfaces of authenticators. The aggregator combines several of them; see `union.py`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from tetrapod.generic.http.request import Request
from tetrapod.machinery.user import UserInfo

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class Authenticated(NamedTuple):
    """An authenticated user.

    Attributes:
        user: the user.
        audiences: those of the requested audiences that the credential is valid for.
        annotations: audit annotations about the credential.
        warnings: warnings for the client about the credential.

    Upstream: token/cache/cached_token_authenticator.go, which caches annotations and warnings too
    """

    user: UserInfo
    audiences: tuple[str, ...] = ()
    annotations: Mapping[str, str] = _NONE
    warnings: tuple[str, ...] = ()


class Rejected(NamedTuple):
    """The result for an invalid credential. The next authenticators are still tried.

    It is a value and not an exception because it costs less: the front proxy's authenticator rejects the client
    certificate of every ordinary user's request.

    Attributes:
        errors: why the credential is invalid, for the log. Clients do not get these texts.
    """

    errors: tuple[str, ...]


class RequestAuthenticator(Protocol):
    """An authenticator of requests that decides alone.

    `authenticate` returns None if the request has no credential that it knows, which the filter rejects with a 401. It
    raises StatusError 401 for an invalid credential, and others if it cannot decide.
    """

    async def authenticate(self, request: Request) -> Authenticated | None: ...


class AlternativeAuthenticator(Protocol):
    """An authenticator of one kind of credential, which `UnionAuthenticator` combines with others.

    `authenticate` returns None if the request has no credential of this kind, and `Rejected` for an invalid credential.
    It raises StatusError only if it cannot decide, such as when a service is unavailable.
    """

    async def authenticate(self, request: Request) -> Authenticated | Rejected | None: ...


class TokenAuthenticator(Protocol):
    """An authenticator of bearer tokens.

    `authenticate_token` returns None for tokens of other kinds. If `audiences` is empty, the authenticator uses its own
    default audiences.

    Raises:
        InvalidToken: the token is of this authenticator's kind, but invalid.
    """

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None: ...


class InvalidToken(Exception):
    """An invalid token of a kind that the authenticator knows. The status of a TokenReview shows the text."""
