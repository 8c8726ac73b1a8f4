"""ID tokens of a real issuer over TLS: audiences, the mapping of claims to the user, and attempts to forge tokens."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from support.issuer import AUDIENCE, Issuer, issuer
from support.webhook import Answer
from tetrapod.auth.oidc.authenticator import JwtAuthenticator
from tetrapod.generic.authentication.interface import InvalidToken
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.configuration.server_identity import label_hash
from tetrapod.generic.metrics.registry import every
from tetrapod.generic.observability.exposition import text
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.machinery.user import UserInfo

BY_SUBJECT: dict[str, Any] = {"username": {"claim": "sub", "prefix": "oidc:"}}


@pytest.fixture
def provider() -> Iterator[Issuer]:
    with issuer() as made:
        yield made


class Clock:
    ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


@asynccontextmanager
async def authenticator(
    provider: Issuer, clock: Callable[[], float] = time.time, **config: Any
) -> AsyncIterator[JwtAuthenticator]:
    pool = BackendPool()
    about = {
        "url": provider.url,
        "audiences": [AUDIENCE],
        "certificateAuthority": provider.ca,
        **config.pop("issuer", {}),
    }
    made = JwtAuthenticator({"issuer": about, "claimMappings": BY_SUBJECT, **config}, pool, clock=clock)
    await made.run()
    try:
        yield made
    finally:
        await pool.close()


async def user_of(made: JwtAuthenticator, token: str) -> UserInfo:
    found = await made.authenticate_token(token, ())
    assert found is not None
    return found.user


async def rejection(made: JwtAuthenticator, token: str) -> str:
    with pytest.raises(InvalidToken) as rejected:
        await made.authenticate_token(token, ())
    return str(rejected.value)


@pytest.mark.parametrize("enabled", [True, False])
async def test_a_gate_decides_whether_fetched_keys_are_in_the_metrics(provider: Issuer, enabled: bool) -> None:
    feature_gates.configure([f"StructuredAuthenticationConfigurationJWKSMetrics={str(enabled).lower()}"])
    try:
        async with authenticator(provider) as made:
            await user_of(made, provider.token())
            page = text.render(every()).decode()
    finally:
        feature_gates.configure([])
    issuer_label = f'jwt_issuer_hash="{label_hash(provider.url)}"'
    found = {line.partition("{")[0] for line in page.splitlines() if issuer_label in line and "jwks" in line}
    prefix = "apiserver_authentication_jwt_authenticator_jwks_fetch_last"
    assert found == ({f"{prefix}_timestamp_seconds", f"{prefix}_key_set_info"} if enabled else set())


# --- the user


async def test_a_valid_token_authenticates_its_user(provider: Issuer) -> None:
    mappings = {**BY_SUBJECT, "groups": {"claim": "roles", "prefix": "g:"}, "uid": {"claim": "oid"}}
    async with authenticator(provider, claimMappings=mappings) as made:
        found = await user_of(made, provider.token(roles=["a", "b"], oid="u-1", jti="t-1"))
        one_group = await user_of(made, provider.token(roles="a", oid="u-1"))
    extra: dict[str, tuple[str, ...]] = {"authentication.kubernetes.io/credential-id": ("JTI=t-1",)}
    assert found == UserInfo("oidc:jane", "u-1", ("g:a", "g:b"), extra)
    assert one_group.groups == ("g:a",)


async def test_expressions_map_claims_to_the_user(provider: Issuer) -> None:
    mappings = {
        "username": {"expression": "claims.email.split('@')[0] + ':' + string(claims.level)"},
        "groups": {"expression": "claims.realm.roles.map(r, 'kc:' + r)"},
        "uid": {"expression": "claims.?oid.orValue('none')"},
        "extra": [
            {"key": "example.com/tenant", "valueExpression": "claims.tenant"},
            {"key": "example.com/pod", "valueExpression": "claims.kubernetes__dot__io.pod.name"},
            {"key": "example.com/nothing", "valueExpression": "''"},
        ],
    }
    rules = [{"expression": "claims.email_verified == true", "message": "verify your address"}]
    async with authenticator(provider, claimMappings=mappings, claimValidationRules=rules) as made:
        about: dict[str, Any] = {"email": "jane@x.org", "level": 3, "realm": {"roles": ["a", ""]}, "tenant": ["t1", ""]}
        about |= {"email_verified": True, "kubernetes.io": {"pod": {"name": "p"}}}
        found = await user_of(made, provider.token(**about))
        rejected = await rejection(made, provider.token(**{**about, "email_verified": False}))
    assert found.name == "jane:3"
    assert found.groups == ("kc:a", "kc:")
    assert found.uid == "none"
    assert found.extra == {"example.com/tenant": ("t1",), "example.com/pod": ("p",)}
    words = (
        "oidc: error evaluating claim validation expression: validation expression "
        "'claims.email_verified == true' failed"
    )
    assert rejected == f"{words}: verify your address"


async def test_user_validation_rules_see_the_mapped_user(provider: Issuer) -> None:
    rules = [{"expression": "!user.username.startsWith('system:')", "message": "not a name for users"}]
    mappings = {"username": {"claim": "sub", "prefix": ""}}
    async with authenticator(provider, claimMappings=mappings, userValidationRules=rules) as made:
        assert (await user_of(made, provider.token())).name == "jane"
        rejected = await rejection(made, provider.token(sub="system:admin"))
    words = (
        "oidc: error evaluating user info validation rule: validation expression "
        "'!user.username.startsWith('system:')' failed"
    )
    assert rejected == f"{words}: not a name for users"


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ({"sub": None}, 'oidc: parse username claims "sub": claim not present'),
        (
            {"sub": 3},
            "oidc: verify token: oidc: failed to unmarshal claims: json: cannot unmarshal number into Go struct field "
            "idToken.sub of type string",
        ),
        ({"tier": 3}, "oidc: parse claim tier: json: cannot unmarshal number into Go value of type string"),
        ({"roles": 3}, 'oidc: parse groups claim "roles": json: cannot unmarshal number into Go value of type string'),
        ({"tier": None}, "oidc: required claim tier not present in ID token"),
        ({"tier": "free"}, "oidc: required claim tier value does not match. Got = free, want = paid"),
    ],
)
async def test_claims_of_the_wrong_type_are_rejected(provider: Issuer, claims: dict[str, Any], text: str) -> None:
    mappings = {**BY_SUBJECT, "groups": {"claim": "roles", "prefix": ""}}
    rules = [{"claim": "tier", "requiredValue": "paid"}]
    async with authenticator(provider, claimMappings=mappings, claimValidationRules=rules) as made:
        assert await rejection(made, provider.token(**{"tier": "paid", **claims})) == text


async def test_an_email_must_be_verified_if_the_claim_exists(provider: Issuer) -> None:
    async with authenticator(provider, claimMappings={"username": {"claim": "email", "prefix": ""}}) as made:
        assert (await user_of(made, provider.token(email="j@x.org"))).name == "j@x.org"
        assert (
            await rejection(made, provider.token(email="j@x.org", email_verified=False)) == "oidc: email not verified"
        )
        assert "email_verified" in await rejection(made, provider.token(email="j@x.org", email_verified="true"))


# --- forgeries


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _unsigned(header: dict[str, Any], claims: dict[str, Any]) -> str:
    return f"{_b64(json.dumps(header).encode())}.{_b64(json.dumps(claims).encode())}"


async def test_tokens_without_a_signature_algorithm_are_rejected(provider: Issuer) -> None:
    async with authenticator(provider) as made:
        for name in ("none", "None", "NONE", "", None):
            token = _unsigned({"alg": name, "kid": "one"}, provider.claims()) + "."
            assert "unsupported algorithm" in await rejection(made, token)
        missing = _unsigned({"kid": "one"}, provider.claims()) + "."
        assert 'got ""' in await rejection(made, missing)


async def test_a_public_key_is_not_accepted_as_an_hmac_secret(provider: Issuer) -> None:
    """Key confusion: HS256 with the bytes of the public key, in each form that an attacker can get."""
    public = provider.keys["one"][0].public_key()
    forms = [
        public.public_bytes(encoding, form)
        for encoding, form in (
            (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
            (serialization.Encoding.PEM, serialization.PublicFormat.PKCS1),
            (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo),
        )
    ]
    async with authenticator(provider) as made:
        for secret in [*forms, json.dumps(provider.jwk("one")).encode(), b""]:
            for alg, digest in (("HS256", hashlib.sha256), ("HS512", hashlib.sha512)):
                signed = _unsigned({"alg": alg, "kid": "one"}, provider.claims())
                token = f"{signed}.{_b64(hmac.new(secret, signed.encode(), digest).digest())}"
                assert "unsupported algorithm" in await rejection(made, token)


async def test_symmetric_and_malformed_keys_in_the_key_set_are_ignored(provider: Issuer) -> None:
    jwks = {
        "keys": [
            {"kty": "oct", "kid": "one", "k": _b64(b"secret")},
            {"kty": "OKP", "crv": "Ed25519", "x": "a"},
            {"kty": ["RSA"], "kid": "list"},
            {"kty": {"RSA": True}, "kid": "object"},
            provider.jwk("one"),
        ]
    }
    provider.server.on("/keys", lambda _: jwks)
    async with authenticator(provider) as made:
        assert (await user_of(made, provider.token())).name == "oidc:jane"


async def test_a_token_signed_by_an_unknown_key_is_rejected(provider: Issuer) -> None:
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    async with authenticator(provider) as made:
        for headers in (
            {"kid": "one"},
            {"kid": "unknown"},
            {"kid": ""},
            {},
            {"jwk": provider.jwk("one")},
            {"jku": "https://evil.example/keys"},
        ):
            token = jwt.encode(provider.claims(), stranger, "RS256", headers=headers)
            assert (
                await rejection(made, token)
                == "oidc: verify token: failed to verify signature: failed to verify id token signature"
            )


async def test_an_elliptic_curve_key_verifies_only_its_own_algorithm(provider: Issuer) -> None:
    provider.add_key("curve", "ES384")
    async with authenticator(provider) as made:
        assert (await user_of(made, provider.token("curve"))).name == "oidc:jane"
        head, body, signature = provider.token("curve").split(".")
        forged = f"{_b64(json.dumps({'alg': 'ES256', 'kid': 'curve'}).encode())}.{body}.{signature}"
        assert "failed to verify" in await rejection(made, forged)
        assert head


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ({"aud": "another"}, 'oidc: verify token: oidc: expected audience "kubernetes" got ["another"]'),
        ({"aud": None}, 'oidc: verify token: oidc: expected audience "kubernetes" got []'),
        ({"aud": []}, 'oidc: verify token: oidc: expected audience "kubernetes" got []'),
        (
            {"aud": ["kubernetes.evil"]},
            'oidc: verify token: oidc: expected audience "kubernetes" got ["kubernetes.evil"]',
        ),
        (
            {"exp": 1000000000},
            "oidc: verify token: oidc: token is expired (Token Expiry: 2001-09-09 01:46:40 +0000 UTC)",
        ),
        ({"exp": None}, "oidc: verify token: oidc: token is expired (Token Expiry: 0001-01-01 00:00:00 +0000 UTC)"),
    ],
)
async def test_wrong_audience_or_expired_tokens_are_rejected(
    provider: Issuer, claims: dict[str, Any], text: str
) -> None:
    async with authenticator(provider) as made:
        assert await rejection(made, provider.token(**claims)) == text


async def test_invalid_times_are_rejected(provider: Issuer) -> None:
    async with authenticator(provider) as made:
        odd: tuple[Any, ...] = ("soon", [], {}, True)
        for value in odd:
            raw = _unsigned({"alg": "RS256", "kid": "one"}, {**provider.claims(), "exp": value})
            # instead of the claims
            signature = jwt.PyJWS().encode(raw.split(".")[1].encode(), provider.keys["one"][0], "RS256")
            assert "failed to verify" in await rejection(made, f"{raw}.{signature.split('.')[2]}")
            signed = jwt.PyJWS().encode(
                json.dumps({**provider.claims(), "exp": value}).encode(), provider.keys["one"][0], "RS256"
            )
            assert "failed to unmarshal claims" in await rejection(made, signed)


async def test_not_before_allows_a_minute_of_clock_skew_and_expiry_none(provider: Issuer) -> None:
    clock = Clock()
    now = int(time.time())
    async with authenticator(provider, clock) as made:
        assert (await user_of(made, provider.token(nbf=now + 50))).name == "oidc:jane"
        assert "before the nbf (not before) time" in await rejection(made, provider.token(nbf=now + 90))
        token = provider.token(exp=now + 100)
        assert await user_of(made, token)
        clock.ahead = 101
        assert "token is expired" in await rejection(made, token)


async def test_tokens_of_other_issuers_are_left_to_other_authenticators(provider: Issuer) -> None:
    async with authenticator(provider) as made:
        for iss in ("https://other.example", provider.url + "/", provider.url.upper(), "", None, 3, ["x"]):
            assert (
                await made.authenticate_token(_unsigned({"alg": "none"}, {**provider.claims(), "iss": iss}) + ".", ())
                is None
            )
        for junk in (
            "",
            "a.b.c",
            "a.b",
            "....",
            "{}",
            '{"payload": "x"}',
            "a." + _b64(b"[]") + ".c",
            "a." + _b64(b"\xff") + ".c",
        ):
            assert await made.authenticate_token(junk, ()) is None


async def test_a_tampered_token_is_rejected(provider: Issuer) -> None:
    head, _, signature = provider.token().split(".")
    admin = _b64(json.dumps(provider.claims(sub="admin")).encode())
    async with authenticator(provider) as made:
        assert "failed to verify" in await rejection(made, f"{head}.{admin}.{signature}")
        critical = provider.token(headers={"crit": ["exp"]})
        assert "failed to verify" in await rejection(made, critical)


async def test_one_of_several_audiences_suffices(provider: Issuer) -> None:
    about = {"audiences": ["kubernetes", "other"], "audienceMatchPolicy": "MatchAny"}
    async with authenticator(provider, issuer=about) as made:
        assert await user_of(made, provider.token(aud=["x", "other"]))
        text = await rejection(made, provider.token(aud="x"))
    assert text == 'oidc: verify token: oidc: expected audience in ["kubernetes" "other"] got ["x"]'


async def test_random_invalid_tokens_never_authenticate(provider: Issuer) -> None:
    """A thousand invalid tokens: none authenticates a user, and none causes another error."""
    dice = random.Random(7)
    good = provider.token()
    parts = good.split(".")
    async with authenticator(provider) as made:
        assert await user_of(made, good)
        for _ in range(1000):
            cut = list(parts)
            which = dice.randrange(3)
            raw = bytearray(base64.urlsafe_b64decode(cut[which] + "=" * (-len(cut[which]) % 4)))
            match dice.randrange(4):
                case 0:
                    raw[dice.randrange(len(raw))] ^= 1 << dice.randrange(8)
                case 1:
                    del raw[dice.randrange(len(raw)) :]
                case 2:
                    raw[dice.randrange(len(raw)) : 0] = dice.randbytes(3)
                case _:
                    raw += b'{"iss": 1e999}'
            cut[which] = _b64(bytes(raw))
            with contextlib.suppress(InvalidToken):
                assert await made.authenticate_token(".".join(cut), ()) is None


@pytest.mark.parametrize("number", ["1e999", "9" * 400, "-1e999", "1e308", "-5", "0.5"])
async def test_huge_numbers_are_invalid_times(provider: Issuer, number: str) -> None:
    payload = json.dumps(provider.claims(exp=0)).replace('"exp": 0', f'"exp": {number}')
    token = jwt.PyJWS().encode(payload.encode(), provider.keys["one"][0], "RS256", headers={"kid": "one"})
    async with authenticator(provider) as made:
        with contextlib.suppress(InvalidToken):
            assert await made.authenticate_token(token, ()) is None


async def test_a_name_with_invalid_unicode_is_repaired(provider: Issuer) -> None:
    payload = json.dumps(provider.claims(sub="X")).replace('"X"', '"a\\ud800b"')
    token = jwt.PyJWS().encode(payload.encode(), provider.keys["one"][0], "RS256", headers={"kid": "one"})
    async with authenticator(provider) as made:
        assert (await user_of(made, token)).name == "oidc:a\ufffdb"


# --- keys


async def test_key_rotation_of_the_issuer_is_followed(provider: Issuer) -> None:
    async with authenticator(provider) as made:
        old = provider.token()
        assert await user_of(made, old)
        provider.add_key("two")
        del provider.keys["one"]
        assert await user_of(made, provider.token("two"))
        assert "failed to verify" in await rejection(made, old)


async def test_keys_are_cached_as_cache_control_says(provider: Issuer) -> None:
    clock = Clock()
    provider.cache_control = "public, max-age=600"
    async with authenticator(provider, clock) as made:
        await user_of(made, provider.token())
        provider.add_key("two")
        assert "failed to verify" in await rejection(made, provider.token("two"))
        assert provider.fetches == 1
        clock.ahead = 580
        assert await user_of(made, provider.token("two", exp=int(time.time()) + 6000))
        assert provider.fetches == 2


async def test_cached_keys_are_used_while_the_issuer_is_unavailable(provider: Issuer) -> None:
    async with authenticator(provider) as made:
        await user_of(made, provider.token())
        provider.server.on("/keys", lambda _: Answer(503, b"busy"))
        assert await user_of(made, provider.token(sub="joe"))
        provider.add_key("two")
        text = await rejection(made, provider.token("two"))
    assert text == "oidc: verify token: failed to verify signature: fetching keys oidc: get keys failed: 503 busy"


async def test_discovery_is_repeated_after_a_redirect_to_an_invalid_url(provider: Issuer) -> None:
    answers = iter([Answer(302, b"", {"location": "http://[::1"})])
    document = lambda _: next(answers, None) or provider.discovery  # noqa: E731
    provider.server.on("/.well-known/openid-configuration", document)
    async with authenticator(provider) as made:
        assert (await user_of(made, provider.token())).name == "oidc:jane"


async def test_discovery_url_may_differ_from_the_issuer(provider: Issuer) -> None:
    provider.discovery["issuer"] = "https://issuer.example"
    about = {"url": "https://issuer.example", "discoveryURL": f"{provider.url}/.well-known/openid-configuration"}
    async with authenticator(provider, issuer=about) as made:
        assert (await user_of(made, provider.token(iss="https://issuer.example"))).name == "oidc:jane"


async def test_a_discovery_document_of_another_issuer_is_rejected(provider: Issuer) -> None:
    provider.discovery["issuer"] = "https://evil.example"
    pool = BackendPool()
    config = {
        "issuer": {"url": provider.url, "audiences": [AUDIENCE], "certificateAuthority": provider.ca},
        "claimMappings": BY_SUBJECT,
    }
    made = JwtAuthenticator(config, pool)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await made.run()
    assert "issuer did not match the issuer returned by provider" in made.discovery_error()
    assert await rejection(made, provider.token()) == "oidc: authenticator not initialized"
    await pool.close()


# --- distributed claims


async def test_distributed_claims_are_fetched(provider: Issuer) -> None:
    mappings = {**BY_SUBJECT, "groups": {"claim": "groups", "prefix": ""}}
    provider.server.on("/groups", lambda _: Answer(body=provider.token(groups=["far", "away"]).encode()))
    place = {"endpoint": f"{provider.url}/groups", "access_token": "foo"}
    async with authenticator(provider, claimMappings=mappings) as made:
        token = provider.token(_claim_names={"groups": "src1"}, _claim_sources={"src1": place})
        assert (await user_of(made, token)).groups == ("far", "away")
        asked = next(headers for path, headers, _ in provider.server.seen if path == "GET /groups")
        assert asked["authorization"] == "Bearer foo"
        provider.server.on(
            "/groups",
            lambda _: Answer(body=_unsigned({"alg": "none"}, provider.claims(groups=["root"])).encode() + b"."),
        )
        assert "verify distributed claim token" in await rejection(made, token)
        assert "source does not exist" in await rejection(
            made, provider.token(_claim_names={"groups": "x"}, _claim_sources={})
        )
        assert "cannot unmarshal array into Go struct field idToken._claim_names of type string" in await rejection(
            made, provider.token(_claim_names={"groups": ["src1"]}, _claim_sources={"src1": place})
        )
