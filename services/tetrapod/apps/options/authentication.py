"""The flags of authentication. Upstream: pkg/kubeapiserver/options/authentication.go."""

from __future__ import annotations

from dataclasses import dataclass

from tetrapod.apps.options.flag import AUTH, Kind, flag, group


@dataclass(frozen=True, slots=True)
class TokenWebhookFlags:
    """The flags of the webhook that reviews bearer tokens."""

    config_file: str = flag(
        "authentication-token-webhook-config-file",
        "",
        "File with webhook configuration for token authentication in kubeconfig format. The API server will query the "
        "remote service to determine authentication for bearer tokens.",
    )
    version: str = flag(
        "authentication-token-webhook-version",
        "v1beta1",
        "The API version of the authentication.k8s.io TokenReview to send to and expect from the webhook.",
    )
    cache_ttl: float = flag(
        "authentication-token-webhook-cache-ttl",
        120.0,
        "The duration to cache responses from the webhook token authenticator.",
    )


@dataclass(frozen=True, slots=True)
class OidcFlags:
    """The flags of OpenID Connect tokens."""

    issuer_url: str = flag(
        "oidc-issuer-url",
        "",
        "The URL of the OpenID issuer, only HTTPS scheme will be accepted. If set, it will be used to verify the OIDC "
        "JSON Web Token (JWT).",
    )
    client_id: str = flag(
        "oidc-client-id", "", "The client ID for the OpenID Connect client, must be set if oidc-issuer-url is set."
    )
    ca_file: str = flag(
        "oidc-ca-file",
        "",
        "If set, the OpenID server's certificate will be verified by one of the authorities in the oidc-ca-file, "
        "otherwise the host's root CA set will be used.",
    )
    username_claim: str = flag("oidc-username-claim", "sub", "The OpenID claim to use as the user name.")
    username_prefix: str = flag(
        "oidc-username-prefix",
        "",
        "If provided, all usernames will be prefixed with this value. If not provided, username claims other than "
        "'email' are prefixed by the issuer URL to avoid clashes. To skip any prefixing, provide the value '-'.",
    )
    groups_claim: str = flag(
        "oidc-groups-claim",
        "",
        "If provided, the name of a custom OpenID Connect claim for specifying user groups. The claim value is "
        "expected to be a string or array of strings.",
    )
    groups_prefix: str = flag(
        "oidc-groups-prefix",
        "",
        "If provided, all groups will be prefixed with this value to prevent conflicts with other authentication "
        "strategies.",
    )
    signing_algs: tuple[str, ...] = flag(
        "oidc-signing-algs", ("RS256",), "Comma-separated list of allowed JOSE asymmetric signing algorithms."
    )
    required_claim: tuple[str, ...] = flag(
        "oidc-required-claim",
        (),
        "A key=value pair that describes a required claim in the ID Token. If set, the claim is verified to be present "
        "in the ID Token with a matching value. Repeat this flag to specify multiple claims.",
        kind=Kind.REPEATED,
    )


@dataclass(frozen=True, slots=True)
class ServiceAccountFlags:
    """The flags of service account tokens."""

    issuer: tuple[str, ...] = flag(
        "service-account-issuer",
        ("https://kubernetes.default.svc",),
        "Identifier of the service account token issuer. The issuer will assert this identifier in the iss claim of "
        "issued tokens. When this flag is specified multiple times, the first is used to generate tokens and all are "
        "used to determine which issuers are accepted.",
        programs=frozenset({"auth", "core", "up"}),
    )
    jwks_uri: str = flag(
        "service-account-jwks-uri",
        "",
        "Overrides the URI for the JSON Web Key Set in the discovery doc served at /.well-known/openid-configuration.",
        programs=AUTH,
    )
    key_file: tuple[str, ...] = flag(
        "service-account-key-file",
        (),
        "File containing PEM-encoded x509 RSA or ECDSA private or public keys, used to verify ServiceAccount tokens. "
        "The specified file can contain multiple keys, and the flag can be specified multiple times with different "
        "files.",
        programs=AUTH,
    )
    signing_key_file: str = flag(
        "service-account-signing-key-file",
        "",
        "Path to the file that contains the current private key of the service account token issuer. The issuer will "
        "sign issued ID tokens with this private key.",
        programs=AUTH,
    )
    signing_endpoint: str = flag(
        "service-account-signing-endpoint",
        "",
        "Path to socket where a external JWT signer is listening. This flag is mutually exclusive with "
        "--service-account-signing-key-file and --service-account-key-file.",
        programs=AUTH,
    )
    max_token_expiration: float = flag(
        "service-account-max-token-expiration",
        0.0,
        "The maximum validity duration of a token created by the service account token issuer. If an otherwise valid "
        "TokenRequest with a validity duration larger than this value is requested, a token will be issued with a "
        "validity duration of this value.",
        programs=AUTH,
    )
    extend_token_expiration: bool = flag(
        "service-account-extend-token-expiration",
        True,
        "Turns on projected service account expiration extension during token generation. If this flag is enabled, "
        "admission injected tokens would be extended up to 1 year, ignoring value of "
        "service-account-max-token-expiration.",
        programs=AUTH,
    )


@dataclass(frozen=True, slots=True)
class RequestHeaderFlags:
    """The flags of front proxies: their CA, and the headers in which they pass the user."""

    client_ca_file: str = flag(
        "requestheader-client-ca-file",
        "",
        "Root certificate bundle to use to verify client certificates on incoming requests before trusting usernames "
        "in headers specified by --requestheader-username-headers.",
    )
    allowed_names: tuple[str, ...] = flag(
        "requestheader-allowed-names",
        (),
        "List of client certificate common names to allow to provide usernames in headers specified by "
        "--requestheader-username-headers. If empty, any client certificate validated by the authorities in "
        "--requestheader-client-ca-file is allowed.",
    )
    username_headers: tuple[str, ...] = flag(
        "requestheader-username-headers",
        ("X-Remote-User",),
        "List of request headers to inspect for usernames. X-Remote-User is common.",
    )
    group_headers: tuple[str, ...] = flag(
        "requestheader-group-headers",
        ("X-Remote-Group",),
        "List of request headers to inspect for groups. X-Remote-Group is suggested.",
    )
    uid_headers: tuple[str, ...] = flag(
        "requestheader-uid-headers",
        ("X-Remote-Uid",),
        "List of request headers to inspect for UIDs. X-Remote-Uid is suggested.",
    )
    extra_headers_prefix: tuple[str, ...] = flag(
        "requestheader-extra-headers-prefix",
        ("X-Remote-Extra-",),
        "List of request header prefixes to inspect. X-Remote-Extra- is suggested.",
    )


@dataclass(frozen=True, slots=True)
class AuthenticationFlags:
    """The flags of authentication."""

    anonymous_auth: bool = flag(
        "anonymous-auth",
        True,
        "Enables anonymous requests to the secure port of the API server. Requests that are not rejected by another "
        "authentication method are treated as anonymous requests. Anonymous requests have a username of "
        "system:anonymous, and a group name of system:unauthenticated.",
    )
    config: str = flag(
        "authentication-config",
        "",
        "File with Authentication Configuration to configure the JWT Token authenticator or the anonymous "
        "authenticator. This flag is mutually exclusive with the --oidc-* flags. It is mutually exclusive with "
        "--anonymous-auth if the file configures the anonymous authenticator.",
    )
    token_webhook: TokenWebhookFlags = group(TokenWebhookFlags(), programs=AUTH)
    oidc: OidcFlags = group(OidcFlags(), programs=AUTH)
    client_ca_file: str = flag(
        "client-ca-file",
        "",
        "If set, any request presenting a client certificate signed by one of the authorities in the client-ca-file is "
        "authenticated with an identity corresponding to the CommonName of the client certificate.",
    )
    token_auth_file: str = flag(
        "token-auth-file",
        "",
        "If set, the file that will be used to secure the secure port of the API server via token authentication. A "
        "line is "
        'token,user,uid,"group1,group2".',
        programs=AUTH,
    )
    enable_bootstrap_token_auth: bool = flag(
        "enable-bootstrap-token-auth",
        False,
        "Enable to allow secrets of type 'bootstrap.kubernetes.io/token' in the 'kube-system' namespace to be used for "
        "TLS bootstrapping authentication.",
        programs=AUTH,
    )
    api_audiences: tuple[str, ...] = flag(
        "api-audiences",
        (),
        "Identifiers of the API. The service account token authenticator will validate that tokens used against the "
        "API are bound to at least one of these audiences. By default, the first --service-account-issuer.",
    )
    service_accounts: ServiceAccountFlags = group(ServiceAccountFlags())
    request_header: RequestHeaderFlags = group(RequestHeaderFlags())
