"""The authenticator of identity headers: X-Remote-User, -Uid, -Group and -Extra-*.

The headers are only trusted with the front proxy's client certificate, or from a process of this process's user that
is connected by a Unix socket.
Upstream: k8s.io/apiserver/pkg/authentication/request/headerrequest. The headers are ignored unless the request has a
certificate of the front-proxy CA with an allowed common name. They are always removed from the request.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import unquote

from cryptography import x509
from cryptography.x509.oid import NameOID

from tetrapod.generic.authentication.certificates import CertificatePool
from tetrapod.generic.authentication.interface import Authenticated, Rejected
from tetrapod.generic.http.known_heads import of_headers
from tetrapod.generic.http.peers import AUDIT_REQUEST_HEADER, AUDIT_STATE_KEY, NOT_PROCESSED
from tetrapod.generic.http.request import HeaderList, Request
from tetrapod.generic.lifecycle import RETRY_SECONDS
from tetrapod.generic.observability.tracing import peer_traces
from tetrapod.machinery.boundedcache import BoundedCache, weigh
from tetrapod.machinery.status import StatusError, service_unavailable
from tetrapod.machinery.user import UserInfo, weigh_user

_STANDARD: Final = b"x-remote-"
"""The prefix of the headers that the authentication filter removes in any case."""
Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]
_REQUESTS: Final = {AUDIT_REQUEST_HEADER: AUDIT_STATE_KEY, peer_traces.REQUEST_HEADER: peer_traces.STATE_KEY}
"""The headers of a front proxy's requests for audit data and traces, and the keys of `request.state` for them."""
_MALFORMED: Final = re.compile("%(?![0-9A-Fa-f]{2})")


class HeaderNames(NamedTuple):
    """The names of the identity headers (--requestheader-username-headers and the related flags), in any case.

    Attributes:
        user: headers with the user name; the first of them that is not empty counts.
        uid: headers with the uid; the first of them that is not empty counts.
        group: headers with a group; all values of all of them count.
        extra_prefixes: prefixes of headers with extra values; the rest of the header's name is the key.
    """

    user: Sequence[str] = ("X-Remote-User",)
    uid: Sequence[str] = ("X-Remote-Uid",)
    group: Sequence[str] = ("X-Remote-Group",)
    extra_prefixes: Sequence[str] = ("X-Remote-Extra-",)


STANDARD: Final = HeaderNames()
REMOTE_UID_GATE: Final = "RemoteRequestHeaderUID"
"""The gate with which front proxies and the aggregator pass the uid of the user to API servers."""


class RequestHeaderAuthenticator:
    """The authenticator of identity headers.

    It returns None without a client certificate or without a user header, and `Rejected` if the certificate is not of a
    front proxy. Processes of the same user (`Request.same_user`) need no certificate.

    Args:
        pool: the front-proxy CAs.
        allowed_names: the common names that the certificate may have; empty allows any (--requestheader-allowed-names).
        names: the names of the headers.
        behind_aggregator: whether the only front proxy is the aggregator, which passes responses to its clients. If its
            certificate is not accepted, such as an expired one, a 503 is raised, because a 401 would blame the
            credentials of the client.
    """

    def __init__(
        self,
        pool: CertificatePool,
        allowed_names: Collection[str] = (),
        names: HeaderNames = STANDARD,
        *,
        behind_aggregator: bool = False,
    ) -> None:
        self._pool = pool
        self._allowed = frozenset(allowed_names)
        self._behind_aggregator = behind_aggregator
        self._user_headers, self._uid_headers, self._group_headers, self._extra_prefixes = map(_lower, names)
        self._ours = frozenset((*self._user_headers, *self._uid_headers, *self._group_headers))
        self._beginnings = (*self._ours, *self._extra_prefixes)
        self._users: BoundedCache[Headers, UserInfo] = BoundedCache(
            count=2048,
            size=4 << 20,
            largest=64 << 10,
            weigh_entry=lambda headers, user: weigh(headers) + weigh_user(user),
        )
        """The users by their identity headers, from accepted front proxies only."""
        self._others = not all(name.startswith(_STANDARD) for name in (*self._ours, *self._extra_prefixes))

    async def authenticate(self, request: Request) -> Authenticated | Rejected | None:
        """Return the user that the identity headers name, and remove these headers from the request in any case.

        The class says when the result is None or `Rejected`. Without a client certificate, X-Remote-* headers are
        left for the authentication filter to remove. If the front proxy is accepted, the values of its headers that
        request audit data or traces (http/peers.py) are stored in `request.state`.

        Raises:
            StatusError: 503, the certificate of the aggregator is not accepted.
        """
        try:
            return self._identify(request)
        finally:
            if self._others or request.peer_certificates or request.same_user:
                request.headers = of_headers(request, self._others_of)

    def _identify(self, request: Request) -> Authenticated | Rejected | None:
        if not request.same_user:
            trusted = self._pool.client_of(request)
            if trusted is None:
                return None
            error = trusted if isinstance(trusted, str) else self._name_error(trusted.certificate)
            if error:
                if self._behind_aggregator and any(name in self._user_headers for name, _ in request.headers):
                    raise _front_proxy_rejected(error)
                return Rejected((error,))
        user, requests = of_headers(request, self._read)
        if not user.name:
            return None
        for key, value in requests:
            request.state.setdefault(key, value)
        return Authenticated(user)

    def _others_of(self, headers: HeaderList) -> HeaderList:
        """Return the headers without those of the identity."""
        return [h for h in headers if h[0] not in self._ours and not h[0].startswith(self._extra_prefixes)]

    def _read(self, headers: HeaderList) -> tuple[UserInfo, list[tuple[str, str]]]:
        """Return the user that headers name, and the front proxy's requests: pairs of a key of `state` and a value."""
        identity = tuple([header for header in headers if header[0].startswith(self._beginnings)])
        user = self._users.recall(identity) or self._users.keep(identity, self._user(identity))
        return user, [(key, _utf8(value)) for name, value in headers if value and (key := _REQUESTS.get(name))]

    def _user(self, headers: Headers) -> UserInfo:
        """Return the user that identity headers name. Without a user header, the name is empty."""
        return UserInfo(
            _first(headers, self._user_headers),
            _first(headers, self._uid_headers),
            tuple(_utf8(value) for name in self._group_headers for key, value in headers if key == name),
            self._extra(headers),
        )

    def _name_error(self, certificate: x509.Certificate) -> str:
        """Return an error if the common name of a certificate is not allowed, else ""."""
        if not self._allowed:
            return ""
        names = [str(a.value) for a in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        name = names[-1] if names else ""
        return "" if name in self._allowed else f"x509: subject with cn={name} is not in the allowed list"

    def _extra(self, headers: Headers) -> dict[str, tuple[str, ...]]:
        extra: dict[str, list[str]] = {}
        for prefix in self._extra_prefixes:
            for name, value in headers:
                if name.startswith(prefix):
                    extra.setdefault(extra_key(_utf8(name[len(prefix) :])), []).append(_utf8(value))
        return {key: tuple(texts) for key, texts in extra.items()}


def extra_key(encoded: str) -> str:
    """Return the key of an extra value, given the name of its header without the prefix.

    The name is converted to lower case and then percent-decoded, so encoded upper-case letters are kept.
    Upstream: unescapeExtraKey, which does not decode a name with malformed escapes

    Args:
        encoded: the rest of the header name after a prefix such as `X-Remote-Extra-`.
    """
    return encoded.lower() if _MALFORMED.search(encoded) else unquote(encoded.lower())


def _front_proxy_rejected(error: str) -> StatusError:
    """Return the 503 for requests of an aggregator whose certificate is not accepted.

    The aggregator tries another replica, or the same one over a new connection with its present certificate.
    """
    unavailable = service_unavailable(f"client certificate of the aggregator: {error}", RETRY_SECONDS)
    unavailable.headers.append((NOT_PROCESSED, b"1"))
    return unavailable


def _lower(names: Sequence[str]) -> tuple[bytes, ...]:
    return tuple(name.lower().encode("ascii") for name in names)


def _first(headers: Headers, names: tuple[bytes, ...]) -> str:
    """Return the first value of the first of these headers that is not empty; "" without one."""
    firsts = (next((_utf8(value) for key, value in headers if key == name), "") for name in names)
    return next(filter(None, firsts), "")


def _utf8(raw: bytes) -> str:
    """Decode a header as UTF-8, which the front proxy uses for names and groups. Invalid bytes become U+FFFD."""
    return raw.decode("utf-8", "replace")
