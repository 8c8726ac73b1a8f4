"""Tests of request authentication: client certificates, front proxy, bearer tokens, WebSocket tokens and anonymous
requests.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tetrapod.generic.authentication.bearer import BearerAuthenticator, WebSocketAuthenticator, bearer_token
from tetrapod.generic.authentication.certificates import CertificatePool
from tetrapod.generic.authentication.interface import Authenticated, InvalidToken
from tetrapod.generic.authentication.requestheader import HeaderNames, RequestHeaderAuthenticator, extra_key
from tetrapod.generic.authentication.tokencache import CachedTokenAuthenticator, ExpiringCache
from tetrapod.generic.authentication.union import UnionAuthenticator
from tetrapod.generic.authentication.x509 import UID_OID, X509Authenticator
from tetrapod.generic.configuration.feature_gates import configure
from tetrapod.generic.http.peers import NOT_PROCESSED
from tetrapod.generic.http.request import Request
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.user import UserInfo

NOW = datetime.now(UTC)


class Authority:
    def __init__(self, name: str) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._sign(self.name, self.key, ca=True)
        self.pool = CertificatePool(self.certificate.public_bytes(serialization.Encoding.PEM))

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        *,
        ca: bool = False,
        usage: x509.ObjectIdentifier | None = None,
        days: int = 1,
    ) -> x509.Certificate:
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - timedelta(days=5))
            .not_valid_after(NOW + timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if usage is not None:
            builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        return builder.sign(self.key, hashes.SHA256())

    def client(
        self,
        cn: str,
        *groups: str,
        uid: str = "",
        usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.CLIENT_AUTH,
        days: int = 1,
    ) -> bytes:
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, g) for g in groups]
        attributes += [x509.NameAttribute(UID_OID, uid)] if uid else []
        attributes += [x509.NameAttribute(NameOID.COMMON_NAME, cn)] if cn else []
        key = ec.generate_private_key(ec.SECP256R1())
        return self._sign(x509.Name(attributes), key, usage=usage, days=days).public_bytes(serialization.Encoding.DER)


USERS, PROXIES = Authority("users"), Authority("proxies")


class Tokens:
    def __init__(self) -> None:
        self.asked = 0

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        self.asked += 1
        if token == "bad":
            raise InvalidToken("no good")
        return Authenticated(UserInfo(token.removesuffix("-token"))) if token.endswith("-token") else None


def request(*headers: tuple[str, str], certificate: bytes | None = None) -> Request:
    made = Request("GET", "/api", headers=[(k.lower().encode(), v.encode()) for k, v in headers])
    made.peer_certificates = () if certificate is None else (certificate,)
    return made


def everyone() -> UnionAuthenticator:
    return UnionAuthenticator(
        [
            RequestHeaderAuthenticator(PROXIES.pool, ["front-proxy-client"]),
            X509Authenticator(USERS.pool, reserved_groups=["reserved"]),
            BearerAuthenticator(Tokens()),
            WebSocketAuthenticator(Tokens()),
        ]
    )


async def who(made: Request) -> UserInfo:
    result = await everyone().authenticate(made)
    assert result is not None
    return result.user


async def test_a_certificate_names_user_groups_and_uid() -> None:
    user = await who(request(certificate=USERS.client("alice", "a", "b", uid="u-1")))
    assert (user.name, user.uid, user.groups) == ("alice", "u-1", ("a", "b", "system:authenticated"))
    assert user.extra["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")


async def test_the_uid_of_a_certificate_is_ignored_without_its_feature_gate() -> None:
    configure(["AllowParsingUserUIDFromCertAuth=false"])
    try:
        assert (await who(request(certificate=USERS.client("alice", "a", uid="u-1")))).uid == ""
    finally:
        configure(())


async def test_certificates_cannot_grant_the_servers_own_groups() -> None:
    assert (await who(request(certificate=USERS.client("eve", "reserved", "b")))).groups == (
        "b",
        "system:authenticated",
    )


@pytest.mark.parametrize(
    "certificate",
    [
        PROXIES.client("alice"),  # a certificate of another CA
        USERS.client("alice", usage=ExtendedKeyUsageOID.SERVER_AUTH),
        USERS.client("alice", days=-1),
        b"rubbish",
    ],
    ids=["other-ca", "server-usage", "expired", "rubbish"],
)
async def test_an_invalid_certificate_is_401_unless_a_token_is_valid(certificate: bytes) -> None:
    with pytest.raises(StatusError, match="Unauthorized"):
        await who(request(certificate=certificate))
    assert (await who(request(("Authorization", "Bearer bob-token"), certificate=certificate))).name == "bob"


async def test_the_front_proxy_sets_the_user() -> None:
    headers = [("X-Remote-User", "eve"), ("X-Remote-Group", "a"), ("X-Remote-Group", "b"), ("X-Remote-Uid", "u")]
    made = request(*headers, ("X-Remote-Extra-Acme.com%2FX", "1"), certificate=PROXIES.client("front-proxy-client"))
    user = await who(made)
    assert (user.name, user.uid, user.groups) == ("eve", "u", ("a", "b", "system:authenticated"))
    assert user.extra == {"acme.com/x": ("1",)}
    assert made.headers == []


@pytest.mark.parametrize(
    "certificate", [None, USERS.client("alice"), PROXIES.client("somebody")], ids=["none", "user", "other-proxy"]
)
async def test_remote_user_headers_mean_nothing_without_the_proxys_certificate(certificate: bytes | None) -> None:
    made = request(("X-Remote-User", "admin"), ("X-Remote-Group", "system:masters"), certificate=certificate)
    try:
        assert (await who(made)).name in ("system:anonymous", "alice")
    except StatusError as error:
        assert error.code == 401


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer x", "x"),
        ("bearer x", "x"),
        ("Bearer x junk", "x"),
        ("Bearer  x", ""),
        ("Bearer", ""),
        ("Basic x", ""),
        ("Token x", ""),
        ("", ""),
        (" Bearer x ", "x"),
    ],
)
def test_the_authorization_header_is_read_as_leniently_as_upstream(header: str, token: str) -> None:
    assert bearer_token(header)[0] == token


async def test_two_spaces_before_the_token_are_warned_about() -> None:
    made = request(("Authorization", "Bearer  alice-token"))
    assert (await who(made)).name == "system:anonymous"
    assert made.warnings == [
        "the provided Authorization header contains extra space before the bearer token, and is ignored"
    ]


async def test_an_invalid_token_is_401_and_no_token_is_anonymous() -> None:
    for token in ("unknown", "bad"):
        with pytest.raises(StatusError):
            await who(request(("Authorization", f"Bearer {token}")))
    assert await who(request()) == UserInfo("system:anonymous", groups=("system:unauthenticated",))


def websocket(protocols: str) -> Request:
    return request(("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Protocol", protocols))


def carrier(token: str) -> str:
    return "base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")


async def test_a_websocket_may_carry_its_token_as_a_protocol() -> None:
    made = websocket(f"{carrier('alice-token')}, v4.channel.k8s.io")
    assert (await who(made)).name == "alice"
    assert made.header(b"sec-websocket-protocol") == "v4.channel.k8s.io"


async def test_a_token_is_ignored_if_the_upgrade_is_not_only_to_websocket() -> None:
    made = request(
        ("Connection", "Upgrade"),
        ("Upgrade", "h2c, websocket"),
        ("Sec-WebSocket-Protocol", f"{carrier('alice-token')}, x"),
    )
    assert (await who(made)).name == "system:anonymous"


@pytest.mark.parametrize(
    "protocols",
    [
        carrier("alice-token"),
        f"{carrier('a-token')}, {carrier('b-token')}, v4",
        carrier("alice-token") + "=, v4",
        carrier("wrong") + ", v4",
        "base64url.bearer.authorization.k8s.io.!!, v4",
    ],
)
async def test_a_websocket_token_sent_badly_is_401(protocols: str) -> None:
    with pytest.raises(StatusError):
        await who(websocket(protocols))


CERTIFICATE = USERS.client("alice", usage=ExtendedKeyUsageOID.SERVER_AUTH)
SERIAL = x509.load_der_x509_certificate(CERTIFICATE).serial_number
UNKNOWN, USAGE = (
    "x509: certificate signed by unknown authority",
    f"verifying certificate SN={SERIAL}, SKID=, AKID= failed: x509: certificate specifies an incompatible key usage",
)


@pytest.mark.parametrize(
    ("rejected", "error"),
    [
        (request(("Authorization", "Bearer unknown")), "invalid bearer token"),
        (request(("Authorization", "Bearer bad")), "[invalid bearer token, no good]"),
        (request(certificate=CERTIFICATE), f"[{UNKNOWN}, {USAGE}]"),
        (
            request(("Authorization", "Bearer bad"), certificate=CERTIFICATE),
            f"[invalid bearer token, {UNKNOWN}, {USAGE}, no good]",
        ),
        (websocket(f"{carrier('bad')}, v4"), "no good"),
        (websocket(f"{carrier('unknown')}, v4"), "invalid bearer token"),
        (websocket(carrier("alice-token")), "missing additional subprotocol"),
        (
            websocket(f"{carrier('a-token')}, {carrier('b-token')}, v4"),
            "multiple base64.bearer.authorization tokens specified",
        ),
        (websocket(carrier("a") + "=, v4"), "invalid base64.bearer.authorization token encoding"),
        (websocket("base64url.bearer.authorization.k8s.io._w, v4"), "invalid base64.bearer.authorization token"),
    ],
)
async def test_the_reasons_of_a_401_are_logged(rejected: Request, error: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(StatusError, match="Unauthorized"):
        await who(rejected)
    assert [(record.levelname, record.getMessage(), vars(record)["err"]) for record in caplog.records] == [
        ("ERROR", "Unable to authenticate the request", error)
    ]


async def test_accepted_requests_with_an_invalid_credential_log_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert (await who(request(("Authorization", "Bearer bob-token"), certificate=CERTIFICATE))).name == "bob"
    assert (await who(request())).name == "system:anonymous"
    assert caplog.records == []


@pytest.mark.parametrize(
    "certificate",
    [PROXIES.client("front", days=-1), PROXIES.client("other"), USERS.client("alice", days=-1)],
    ids=["expired", "another name", "another CA"],
)
async def test_a_service_that_rejects_the_aggregator_is_unavailable(certificate: bytes) -> None:
    """The aggregator passes the response to its client, whose credentials are valid."""
    proxies = RequestHeaderAuthenticator(PROXIES.pool, ["front"], behind_aggregator=True)
    authenticator = UnionAuthenticator([proxies, X509Authenticator(USERS.pool), BearerAuthenticator(Tokens())])
    with pytest.raises(StatusError) as caught:
        await authenticator.authenticate(request(("X-Remote-User", "eve"), certificate=certificate))
    assert (caught.value.code, caught.value.retry_after) == (503, 1)
    assert caught.value.headers == [(NOT_PROCESSED, b"1")]


async def test_a_client_of_a_service_with_an_invalid_certificate_is_401() -> None:
    proxies = RequestHeaderAuthenticator(PROXIES.pool, ["front"], behind_aggregator=True)
    authenticator = UnionAuthenticator([proxies, X509Authenticator(USERS.pool)])
    with pytest.raises(StatusError, match="Unauthorized"):
        await authenticator.authenticate(request(certificate=USERS.client("alice", days=-1)))


async def test_accepted_tokens_are_cached_and_rejected_ones_are_not() -> None:
    tokens = Tokens()
    cached = CachedTokenAuthenticator(tokens)
    for _ in range(3):
        assert await cached.authenticate_token("a-token", ()) is not None
    assert tokens.asked == 1
    await cached.authenticate_token("a-token", ("other",))
    assert tokens.asked == 2
    for _ in range(2):
        with pytest.raises(InvalidToken):
            await cached.authenticate_token("bad", ())
    assert tokens.asked == 4


def test_a_cache_forgets_in_time_and_stays_small() -> None:
    now = [0.0]
    cache = ExpiringCache[int, int](10, limit=3, clock=lambda: now[0])
    cache.put(1, 1)
    now[0] = 9.9
    assert cache.get(1) == 1
    now[0] = 10
    assert cache.get(1) is None
    for i in range(10):
        cache.put(i, i)
    assert cache.get(9) == 9
    assert sum(cache.get(i) is not None for i in range(10)) <= 3


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("Scopes", "scopes"),
        ("Acme.com%2FProject", "acme.com/project"),
        ("%41%2fB", "A/b"),
        ("%41%zz", "%41%zz"),
        ("A%2", "a%2"),
        ("", ""),
    ],
)
def test_the_key_of_an_extra_is_small_but_for_what_is_encoded(sent: str, meant: str) -> None:
    assert extra_key(sent) == meant


NAMES = HeaderNames(("Remote-User", "X-Remote-User"), (), ("Remote-Group",), ("Remote-Extra-",))


async def test_headers_have_the_names_that_the_flags_give_them() -> None:
    asked = request(
        ("Remote-User", "eve"),
        ("Remote-Group", "g"),
        ("Remote-Extra-Team", "t"),
        ("X", "y"),
        certificate=PROXIES.client("front"),
    )
    found = await RequestHeaderAuthenticator(PROXIES.pool, (), NAMES).authenticate(asked)
    assert isinstance(found, Authenticated)
    assert found.user == UserInfo("eve", "", ("g",), {"team": ("t",)})
    assert asked.headers == [(b"x", b"y")]


@pytest.mark.parametrize(
    "certificate", [None, PROXIES.client("somebody"), USERS.client("alice")], ids=["none", "another name", "a user"]
)
async def test_untrusted_identity_headers_are_dropped(certificate: bytes | None) -> None:
    """An aggregated server behind Tetrapod accepts its certificate, and reads the header names in the flags."""
    headers = (
        ("Remote-User", "root"),
        ("Remote-Group", "system:masters"),
        ("Remote-Extra-A", "b"),
        ("Authorization", "Bearer bob-token"),
    )
    asked = request(*headers, certificate=certificate)
    proxies = RequestHeaderAuthenticator(PROXIES.pool, ("front",), NAMES)
    found = await UnionAuthenticator([proxies, BearerAuthenticator(Tokens())]).authenticate(asked)
    assert found is not None
    assert found.user.name == "bob"
    assert [name for name, _ in asked.headers] == [b"authorization"]  # which the filter drops
