"""Tests of forged service account tokens (algorithms, keys, issuers, times): every one must be rejected."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tetrapod.auth.tokens.issuer import Bound, KeySigner, TokenIssuer, legacy_claims
from tetrapod.auth.tokens.jwts import JwtVerifier
from tetrapod.auth.tokens.keys import StaticKeys, load_verification_keys, verification_key
from tetrapod.auth.tokens.serviceaccounts import BoundTokenAuthenticator, LegacyTokenAuthenticator
from tetrapod.generic.authentication.interface import InvalidToken

ISSUER = "https://kubernetes.default.svc"
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
STRANGER = ec.generate_private_key(ec.SECP256R1())
ACCOUNT = {"metadata": {"namespace": "ns", "name": "robot", "uid": "u-robot"}}
POD = {"metadata": {"namespace": "ns", "name": "p", "uid": "u-p"}}


class Cluster:
    """A fake of `Objects`: the stored objects, by kind, namespace and name."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], dict[str, Any]] = {
            ("ServiceAccount", "ns", "robot"): ACCOUNT,
            ("Pod", "ns", "p"): POD,
        }

    async def find(self, config: Any, namespace: str, name: str, uid: str = "") -> dict[str, Any] | None:
        return self.objects.get((config.kind, namespace if config.namespaced else "", name))


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


class Clock:
    now = time.time()

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


KEYS = [verification_key(RSA_KEY.public_key()), verification_key(EC_KEY.public_key())]


@pytest.fixture
def bound(cluster: Cluster, clock: Clock) -> BoundTokenAuthenticator:
    return BoundTokenAuthenticator(JwtVerifier(StaticKeys(KEYS)), cluster, [ISSUER], [ISSUER], clock=clock)  # type: ignore[arg-type]


def issue(
    key: Any, clock: Clock, seconds: int = 3600, audiences: tuple[str, ...] = (ISSUER,), about: Bound | None = None
) -> str:
    claims = TokenIssuer(ISSUER, clock=clock).bound_claims(ACCOUNT, seconds, audiences, about or Bound())
    return KeySigner(key).signed(claims)


@pytest.mark.parametrize("key", [RSA_KEY, EC_KEY], ids=["RS256", "ES256"])
async def test_issued_tokens_are_accepted(bound: BoundTokenAuthenticator, clock: Clock, key: Any) -> None:
    token = issue(key, clock, about=Bound(pod=POD, node={"name": "n", "uid": ""}))
    found = await bound.authenticate_token(token, ())
    assert found is not None
    assert found.user.name == "system:serviceaccount:ns:robot"
    assert found.user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns")
    assert found.user.extra["authentication.kubernetes.io/pod-name"] == ("p",)
    assert found.user.extra["authentication.kubernetes.io/node-name"] == ("n",)
    assert "authentication.kubernetes.io/node-uid" not in found.user.extra
    assert jwt.get_unverified_header(token).keys() == {"alg", "kid"}


def raw(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    return ".".join(
        base64.urlsafe_b64encode(part).rstrip(b"=").decode()
        for part in (json.dumps(header).encode(), json.dumps(claims).encode(), signature)
    )


def claims_of(token: str) -> dict[str, Any]:
    claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return claims


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", ""])
async def test_tokens_without_a_signature_algorithm_are_rejected(
    bound: BoundTokenAuthenticator, clock: Clock, algorithm: str
) -> None:
    forged = raw({"alg": algorithm, "typ": "JWT"}, claims_of(issue(EC_KEY, clock)))
    with pytest.raises(InvalidToken):
        await bound.authenticate_token(forged, ())


async def test_a_public_key_is_not_accepted_as_an_hmac_secret(bound: BoundTokenAuthenticator, clock: Clock) -> None:
    for key in (RSA_KEY, EC_KEY):
        for encoding in (serialization.Encoding.PEM, serialization.Encoding.DER):
            secret = key.public_key().public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)
            header = {"alg": "HS256", "kid": verification_key(key.public_key()).id}
            unsigned = raw(header, claims_of(issue(EC_KEY, clock))).rstrip(".")
            signature = hmac.new(secret, unsigned.encode(), hashlib.sha256).digest()
            forged = unsigned + "." + base64.urlsafe_b64encode(signature).rstrip(b"=").decode()
            with pytest.raises(InvalidToken):
                await bound.authenticate_token(forged, ())


async def test_an_unknown_key_is_rejected_for_any_key_id(bound: BoundTokenAuthenticator, clock: Clock) -> None:
    claims = claims_of(issue(EC_KEY, clock))
    for headers in ({}, {"kid": KEYS[1].id}, {"kid": KEYS[0].id}, {"jwk": {"kty": "EC"}}, {"kid": "../../dev/null"}):
        with pytest.raises(InvalidToken):
            await bound.authenticate_token(jwt.encode(claims, STRANGER, "ES256", headers), ())


async def test_changed_claims_are_rejected_even_after_the_original_was_seen(
    bound: BoundTokenAuthenticator, clock: Clock
) -> None:
    token = issue(EC_KEY, clock)
    assert await bound.authenticate_token(token, ()) is not None
    header, _, signature = token.split(".")
    changed = raw({}, {**claims_of(token), "sub": "system:serviceaccount:kube-system:admin"}).split(".")[1]
    with pytest.raises(InvalidToken):
        await bound.authenticate_token(f"{header}.{changed}.{signature}", ())


@pytest.mark.parametrize(
    "token", ["", "x", "a.b.c", "..", "eyJhbGciOiJub25lIn0..", "a" * 10_000, "é.é.é", "[" * 5000 + ".."]
)
async def test_garbage_is_left_to_other_authenticators(bound: BoundTokenAuthenticator, token: str) -> None:
    assert await bound.authenticate_token(token, ()) is None


async def test_tokens_of_other_issuers_are_left_to_other_authenticators(
    bound: BoundTokenAuthenticator, clock: Clock
) -> None:
    claims = TokenIssuer("https://other", clock=clock).bound_claims(ACCOUNT, 3600, [ISSUER], Bound())
    other = KeySigner(EC_KEY).signed(claims)
    assert await bound.authenticate_token(other, ()) is None


async def test_audiences_must_match(bound: BoundTokenAuthenticator, clock: Clock) -> None:
    vault = issue(EC_KEY, clock, audiences=("vault", "x"))
    with pytest.raises(InvalidToken, match='token audiences \\["vault" "x"\\] is invalid for the target audiences'):
        await bound.authenticate_token(vault, ())
    found = await bound.authenticate_token(vault, ("other", "vault"))
    assert found is not None
    assert found.audiences == ("vault",)
    slash = issue(EC_KEY, clock, audiences=(ISSUER + "/",))
    with pytest.raises(InvalidToken):
        await bound.authenticate_token(slash, ())


async def test_a_token_ends_in_time_even_when_remembered(bound: BoundTokenAuthenticator, clock: Clock) -> None:
    token = issue(EC_KEY, clock, seconds=600)
    assert await bound.authenticate_token(token, ()) is not None
    clock.now += 600 + 59
    assert await bound.authenticate_token(token, ()) is not None
    clock.now += 2
    with pytest.raises(InvalidToken, match="has expired"):
        await bound.authenticate_token(token, ())


async def test_a_token_from_the_future_is_not_valid_yet(bound: BoundTokenAuthenticator, clock: Clock) -> None:
    token = issue(EC_KEY, clock)
    clock.now -= 120
    with pytest.raises(InvalidToken, match="not valid yet"):
        await bound.authenticate_token(token, ())


def _values(*values: Any) -> tuple[Any, ...]:
    return values


@pytest.mark.parametrize(
    "odd",
    [
        *({"exp": moment} for moment in _values(None, "never", 1e300, 10**30, True, [1])),
        *({"nbf": moment} for moment in _values("1", True, {})),
        *({"iat": moment} for moment in ("x", 1e12)),
        *({"aud": audience} for audience in _values(7, [ISSUER, 7], {}, None)),
        *({key: 7} for key in ("sub", "jti")),
        *({"kubernetes.io": about} for about in _values("x", {}, [])),
    ],
    ids=str,
)
async def test_odd_claims_are_rejected(bound: BoundTokenAuthenticator, clock: Clock, odd: dict[str, Any]) -> None:
    """kube-apiserver v1.37.1 rejected the same tokens, except the one without an expiry."""
    claims = {**claims_of(issue(EC_KEY, clock)), **odd}
    with pytest.raises(InvalidToken):
        await bound.authenticate_token(signed(json.dumps(claims).encode()), ())


@pytest.mark.parametrize(
    "odd", [{"pod": "x"}, {"node": 1}, {"secret": []}, {"warnafter": "x"}, {"serviceaccount": {"name": 7}}], ids=str
)
async def test_odd_claims_about_kubernetes_are_rejected(
    bound: BoundTokenAuthenticator, clock: Clock, odd: dict[str, Any]
) -> None:
    claims = claims_of(issue(EC_KEY, clock))
    claims["kubernetes.io"] |= odd
    with pytest.raises(InvalidToken):
        await bound.authenticate_token(signed(json.dumps(claims).encode()), ())


@pytest.mark.parametrize("change", ["twice", "NaN", "UTF-16", "BOM"])
async def test_ambiguous_claims_are_rejected(bound: BoundTokenAuthenticator, clock: Clock, change: str) -> None:
    text = json.dumps(claims_of(issue(EC_KEY, clock)))
    payload = {
        "twice": text[:-1].encode() + b', "sub": "system:serviceaccount:kube-system:admin"}',
        "NaN": text[:-1].encode() + b', "x": NaN}',
        "UTF-16": text.encode("utf-16"),
        "BOM": text.encode("utf-8-sig"),
    }[change]
    assert await bound.authenticate_token(signed(payload), ()) is None


def signed(payload: bytes) -> str:
    token: str = jwt.api_jws.encode(payload, EC_KEY, "ES256")
    return token


async def test_a_token_is_invalid_once_its_bound_object_is_deleted(
    bound: BoundTokenAuthenticator, clock: Clock, cluster: Cluster
) -> None:
    token = issue(EC_KEY, clock, about=Bound(pod=POD))
    assert await bound.authenticate_token(token, ()) is not None
    cluster.objects["Pod", "ns", "p"] = {"metadata": {"uid": "another"}}
    with pytest.raises(InvalidToken, match=r"pod UID \(another\) does not match service account pod ref claim \(u-p\)"):
        await bound.authenticate_token(token, ())
    del cluster.objects["Pod", "ns", "p"]
    with pytest.raises(InvalidToken, match="has been invalidated"):
        await bound.authenticate_token(token, ())
    cluster.objects["Pod", "ns", "p"] = POD
    cluster.objects["ServiceAccount", "ns", "robot"] = {"metadata": {"uid": "reborn"}}
    with pytest.raises(InvalidToken, match="does not match claim"):
        await bound.authenticate_token(token, ())


async def test_a_legacy_token_is_valid_while_its_secret_exists(cluster: Cluster) -> None:
    token = KeySigner(EC_KEY).signed(legacy_claims(ACCOUNT, "s"))
    legacy = LegacyTokenAuthenticator(JwtVerifier(StaticKeys(KEYS)), cluster, [ISSUER])  # type: ignore[arg-type]
    with pytest.raises(InvalidToken, match="invalidated"):
        await legacy.authenticate_token(token, ())
    secret: dict[str, Any] = {
        "metadata": {"namespace": "ns", "name": "s"},
        "data": {"token": base64.b64encode(token.encode()).decode()},
    }
    cluster.objects["Secret", "ns", "s"] = secret
    found = await legacy.authenticate_token(token, ())
    assert found is not None
    assert found.user.uid == "u-robot"
    assert found.annotations == {
        "authentication.k8s.io/legacy-token": "system:serviceaccount:ns:robot",
        "authentication.k8s.io/legacy-token-manual-secret": "s",
    }
    secret["metadata"]["labels"] = {"kubernetes.io/legacy-token-invalid-since": "2026-01-01"}
    with pytest.raises(InvalidToken, match="marked invalid"):
        await legacy.authenticate_token(token, ())
    secret["data"]["token"] = base64.b64encode(b"other").decode()
    with pytest.raises(InvalidToken, match="server's copy"):
        await legacy.authenticate_token(token, ())


async def test_a_token_that_should_have_been_renewed_is_reported(bound: BoundTokenAuthenticator, clock: Clock) -> None:
    claims = TokenIssuer(ISSUER, clock=clock).bound_claims(ACCOUNT, 31536000, (ISSUER,), Bound(pod=POD), 3607)
    token = KeySigner(EC_KEY).signed(claims)
    early = await bound.authenticate_token(token, ())
    assert early is not None and early.annotations == {}
    clock.now += 3700
    late = await bound.authenticate_token(token, ())
    assert late is not None
    warning = "subject: system:serviceaccount:ns:robot, seconds after warning threshold: 93"
    assert late.annotations == {"authentication.k8s.io/stale-token": warning}


def test_a_key_verifies_with_its_own_algorithms_only() -> None:
    assert verification_key(RSA_KEY.public_key()).algorithms == ("RS256", "RS384", "RS512")
    assert verification_key(EC_KEY.public_key()).algorithms == ("ES256",)
    assert verification_key(ec.generate_private_key(ec.SECP384R1()).public_key()).algorithms == ("ES384",)


def test_keys_are_read_from_public_and_private_pem_alike() -> None:
    private = EC_KEY.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = RSA_KEY.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    assert [key.id for key in load_verification_keys(private + public)] == [KEYS[1].id, KEYS[0].id]
    with pytest.raises(ValueError, match="does not contain"):
        load_verification_keys(b"nothing")
    jwk = KEYS[0].jwk()
    assert jwk.keys() == {"use", "kty", "kid", "alg", "n", "e"}
    assert jwk["e"] == "AQAB"


@pytest.mark.parametrize("odd", ["=", "==", "!", "\0", "+", "/", "é", "x" * 3])
async def test_noncanonical_token_encodings_are_rejected(
    bound: BoundTokenAuthenticator, clock: Clock, odd: str
) -> None:
    assert await bound.authenticate_token(issue(RSA_KEY, clock) + odd, ()) is None


@pytest.mark.parametrize("issuer", [[ISSUER], {ISSUER: 1}, None, 7, True])
async def test_an_issuer_that_is_not_a_string_is_left_to_other_authenticators(
    bound: BoundTokenAuthenticator, clock: Clock, issuer: object
) -> None:
    header, _, signature = issue(RSA_KEY, clock).split(".")
    payload = raw({}, {"iss": issuer}).split(".")[1]
    assert await bound.authenticate_token(f"{header}.{payload}.{signature}", ()) is None


async def test_rejections_have_the_messages_of_go_jose(bound: BoundTokenAuthenticator, clock: Clock) -> None:
    token = issue(RSA_KEY, clock)
    claims, tail = claims_of(token), b"x" * 256
    with pytest.raises(InvalidToken, match=r"^go-jose/go-jose: error in cryptographic primitive$"):
        await bound.authenticate_token(raw({"alg": "RS256", "kid": KEYS[0].id}, claims, tail), ())
    with pytest.raises(InvalidToken, match=r"^invalid signature, no keys found$"):
        await bound.authenticate_token(raw({"alg": "RS256", "kid": "another"}, claims, tail), ())
    for header in ({"alg": "RS256", "kid": 7}, {"alg": 7}, {"alg": "RS256", "jwk": {"kty": "oct", "k": "eA"}}):
        assert await bound.authenticate_token(raw(header, claims, tail), ()) is None
