"""The flags of the HTTPS listener. Upstream: staging/src/k8s.io/apiserver/pkg/server/options/serving.go."""

from __future__ import annotations

from dataclasses import dataclass

from tetrapod.apps.options.flag import SEPARATE, Kind, flag


@dataclass(frozen=True, slots=True)
class ServingFlags:
    """The flags of secure serving: addresses, port and TLS."""

    bind_address: str = flag(
        "bind-address",
        "0.0.0.0",
        "The IP address on which to listen for the --secure-port port. If blank or an unspecified address (0.0.0.0 or "
        "::), all interfaces and IP address families will be used.",
    )
    advertise_address: str = flag(
        "advertise-address",
        "",
        "The IP address on which to advertise the API server to members of the cluster. This address must be reachable "
        "by the rest of the cluster. If blank, the --bind-address will be used. If --bind-address is unspecified, the "
        "host's default interface will be used.",
        kind=Kind.IP,
        programs=frozenset({"aggregator", "core", "up"}),
    )
    secure_port: int = flag(
        "secure-port",
        6443,
        "The port on which to serve HTTPS with authentication and authorization. If 0, a free port is chosen.",
    )
    permit_port_sharing: bool = flag(
        "permit-port-sharing",
        False,
        "If true, SO_REUSEPORT will be used when binding the port, which allows more than one instance to bind on the "
        "same address and port.",
    )
    unix_socket: str = flag(
        "unix-socket",
        "",
        "The path of a Unix socket on which to serve the other services of this host as well, without TLS. Processes "
        "of the same user are trusted as front proxies, and those of other users are rejected.",
        programs=SEPARATE,
    )
    cert_dir: str = flag(
        "cert-dir",
        "",
        "The directory where the TLS certs are located (apiserver.crt, apiserver.key). The server writes them if they "
        "are missing. If --tls-cert-file and "
        "--tls-private-key-file are provided, this flag will be ignored.",
        programs=frozenset({"up"}),
    )
    tls_cert_file: str = flag(
        "tls-cert-file",
        "",
        "File containing the default x509 Certificate for HTTPS (CA cert, if any, concatenated after server cert). If "
        "it is not provided, `up` generates a certificate in --data-dir, and a separate service uses tls.crt in "
        "--data-dir.",
    )
    tls_private_key_file: str = flag(
        "tls-private-key-file", "", "File containing the default x509 private key matching --tls-cert-file."
    )
    tls_min_version: str = flag(
        "tls-min-version",
        "",
        "Minimum TLS version supported. Possible values: VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13.",
    )
    tls_cipher_suites: tuple[str, ...] = flag(
        "tls-cipher-suites",
        (),
        "Comma-separated list of cipher suites for the server, by Go's names. It does not affect TLS 1.3.",
    )
    tls_curve_preferences: tuple[str, ...] = flag(
        "tls-curve-preferences",
        (),
        "Comma-separated list of numeric Go crypto/tls CurveID values, as the allowed key exchange mechanisms for the "
        "server. The supported values depend on the OpenSSL version used. The order of the list is ignored. If "
        "omitted, the default curves of OpenSSL will be used.",
    )
    tls_sni_cert_key: tuple[str, ...] = flag(
        "tls-sni-cert-key",
        (),
        "A pair of x509 certificate and private key file paths, optionally suffixed with a list of domain patterns. If "
        "no domain patterns are provided, the names of the certificate are extracted. May be repeated. Example: "
        "foo.crt,foo.key:*.foo.com,foo.com.",
        kind=Kind.REPEATED,
    )
    disable_http2_serving: bool = flag(
        "disable-http2-serving", False, "If true, HTTP/2 serving will be disabled and clients are served HTTP/1.1."
    )
    http2_max_streams_per_connection: int = flag(
        "http2-max-streams-per-connection",
        0,
        "The limit that the server gives to clients for the maximum number of streams in an HTTP/2 connection. Zero "
        "means to use the default of 100.",
        minimum=0,
    )
