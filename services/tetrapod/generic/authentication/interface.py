"""What an authenticator is. The aggregator composes several; see `union.py`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from tetrapod.generic.request import Request
from tetrapod.generic.user import UserInfo

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class Authenticated(NamedTuple):
    """Who it is, and of the audiences that were asked for those that the credential is for.

    `annotations` of the audit event and `warnings` for the client are about the credential (upstream: what
    token/cache/cached_token_authenticator.go keeps of both).
    """

    user: UserInfo
    audiences: tuple[str, ...] = ()
    annotations: Mapping[str, str] = _NONE
    warnings: tuple[str, ...] = ()


class RequestAuthenticator(Protocol):
    """Looks at a request: an identity, None (not my kind of credential), or raises `StatusError` 401 (a bad one)."""

    async def authenticate(self, request: Request) -> Authenticated | None: ...


class TokenAuthenticator(Protocol):
    """Looks at a bearer token: an identity, None (not my kind), or raises `InvalidToken`."""

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None: ...


class InvalidToken(Exception):
    """A token of a kind that the authenticator knows, which it refuses; the text says why (TokenReview shows it)."""
