"""TLS of the serving side: certificates by server name, optional client certificates, and renewal without a restart.

As upstream, handshakes without a client certificate or with an untrusted one succeed, and authentication decides about
the request. If Python's OpenSSL cannot be configured so, an untrusted certificate fails the handshake with an alert
(`unknown ca`).
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from tetrapod.generic.certificates.verification import DirectTLS, verify_as_go
from tetrapod.generic.configuration.watching import Stamp, stamp
from tetrapod.generic.http.client_verification import DeferredVerificationConnection, defer_verification
from tetrapod.generic.http.openssl import name_authorities, set_groups
from tetrapod.generic.metrics.counters import Counter

_HANDSHAKE_ERRORS: Final = Counter(
    "apiserver_tls_handshake_errors_total", "Number of requests dropped with 'TLS handshake error from' error"
)


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """The paths of the PEM files of a serving certificate (with its chain) and its key.

    `names` are the server names (also `*.example.com`) for which it is used; the first pair of a server is the default
    for all others.
    """

    certificate: str
    key: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServingTLS:
    """The TLS configuration of a listener.

    Attributes:
        certificates: the serving certificates; the first one is the default.
        client_cas: the paths of PEM bundles with the CAs of client certificates, of users and front proxies.
            Authentication determines which of them signed.
        unnamed_cas: the paths of further bundles, whose CAs are not among those that a handshake names to clients.
        minimum_version: the lowest TLS version.
        ciphers: OpenSSL's names of the cipher suites up to TLS 1.2; "" for the default.
        groups: OpenSSL's names of the groups for the key exchange; "" for the default.
        http2: whether clients are offered HTTP/2.
        max_streams: requests that a client may have open on an HTTP/2 connection; 0 for the default of 100.
    """

    certificates: Sequence[CertificatePair]
    client_cas: Sequence[str] = ()
    unnamed_cas: Sequence[str] = ()
    minimum_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    ciphers: str = ""
    groups: str = ""
    http2: bool = True
    max_streams: int = 0


_PLAIN_HTTP: Final = (
    b"HTTP/1.0 400 Bad Request\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 48\r\nConnection: close\r\n\r\n"
    b"Client sent an HTTP request to an HTTPS server.\n"
)


class _Connection(DirectTLS):
    """A TLS connection that answers plain HTTP with 400, as Go does. OpenSSL would only close the connection."""

    _to_client: ssl.MemoryBIO
    _answered_plain_http = False

    @classmethod
    def _create(cls, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **kwargs: Any) -> Self:
        connection = super()._create(incoming, outgoing, *args, **kwargs)
        connection._to_client = outgoing
        return connection

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            _HANDSHAKE_ERRORS.add()
            if error.reason != "HTTP_REQUEST" or self._answered_plain_http:
                raise
            self._answered_plain_http = True
            self._to_client.write(_PLAIN_HTTP)
            # The loop sends the response; then the client closes, or the handshake times out.
            raise ssl.SSLWantReadError from None


class _DeferredVerificationConnection(DeferredVerificationConnection, _Connection):
    pass


class ServingContext:
    """The SSL contexts of a listener, one for each serving certificate.

    Attributes:
        context: the context for the listener. A handshake begins in it and continues in that of the client's server
            name.

    Args:
        config: the TLS configuration.

    Raises:
        OSError, ssl.SSLError: a file is missing or invalid.
    """

    def __init__(self, config: ServingTLS) -> None:
        self._config = config
        self._stamps = self._read_stamps()
        self._by_name: dict[str, ssl.SSLContext] = {}
        self.context = self._default = self._build(config.certificates[0])
        self.context.sni_callback = self._select_by_server_name
        for pair in config.certificates[1:]:
            context = self._build(pair)
            for name in pair.names:
                self._by_name.setdefault(name.lower(), context)

    def _build(self, pair: CertificatePair) -> ssl.SSLContext:
        config = self._config
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sslobject_class = _Connection
        context.minimum_version = config.minimum_version
        context.set_alpn_protocols(["h2", "http/1.1"] if config.http2 else ["http/1.1"])
        if config.ciphers:
            context.set_ciphers(config.ciphers)
        if config.groups:
            set_groups(context, config.groups)
        context.load_cert_chain(pair.certificate, pair.key)
        if config.client_cas:
            verify_as_go(context)
            self._load_client_authorities(context)
            context.verify_mode = ssl.CERT_OPTIONAL
            if defer_verification(context):
                context.sslobject_class = _DeferredVerificationConnection
        return context

    def _load_client_authorities(self, context: ssl.SSLContext) -> None:
        for bundle in (*self._config.client_cas, *self._config.unnamed_cas):
            context.load_verify_locations(cafile=bundle)
        name_authorities(context, self._config.client_cas)

    def _select_by_server_name(self, connection: ssl.SSLObject, server_name: str | None, _: ssl.SSLContext) -> None:
        """Assign a connection the context of its server name, or the default one.

        OpenSSL calls this in every handshake, also without a server name.
        """
        selected = self._default
        if server_name and self._by_name:
            name = server_name.lower()
            wildcard = "*." + name.partition(".")[2]
            selected = self._by_name.get(name) or self._by_name.get(wildcard) or selected
        if selected is not self.context:
            connection.context = selected

    def _files(self) -> list[str]:
        pairs = [file for pair in self._config.certificates for file in (pair.certificate, pair.key)]
        return [*pairs, *self._config.client_cas, *self._config.unnamed_cas]

    def _read_stamps(self) -> list[Stamp | None]:
        return [stamp(file) for file in self._files()]

    def reload_if_changed(self) -> bool:
        """Load the certificate and CA files again if one has changed, for later handshakes. Return whether one had.

        After an error, the files are loaded again when they change once more.

        Raises:
            OSError, ssl.SSLError: a file is missing or invalid; the current certificates stay in use.
        """
        stamps = self._read_stamps()
        if stamps == self._stamps:
            return False
        self._stamps = stamps
        # New contexts replace the old ones, because OpenSSL cannot remove an authority from a context.
        renewed = ServingContext(self._config)
        renewed.context.sni_callback = None  # it would refer back to `renewed`
        self._default, self._by_name = renewed.context, renewed._by_name
        return True
