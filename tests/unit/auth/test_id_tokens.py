"""Tests of the claims that OpenID Connect defines: what go-oidc accepts, and its error texts."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.auth.oidc.claims import BadClaim
from tetrapod.auth.oidc.id_tokens import IdToken, decode_id_token

_WRONG = "json: cannot unmarshal"


@pytest.mark.parametrize(
    ("claims", "token"),
    [
        ({}, IdToken()),
        ({"aud": None}, IdToken(audience=[""])),
        ({"aud": ["a", None]}, IdToken(audience=["a", ""])),
        ({"iss": None, "nbf": None, "nonce": None}, IdToken()),
        ({"exp": "12", "iat": 1.9, "nbf": "1e3"}, IdToken(times={"exp": 12, "iat": 1, "nbf": 1000})),
        (
            {"_claim_names": {"groups": None}, "_claim_sources": {"s": None}},
            IdToken(claim_names={"groups": ""}, claim_sources={"s": None}),
        ),
    ],
)
def test_missing_and_null_claims_are_empty(claims: dict[str, Any], token: IdToken) -> None:
    assert decode_id_token(claims) == token


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ({"nonce": 1}, f"{_WRONG} number into Go struct field idToken.nonce of type string"),
        ({"at_hash": []}, f"{_WRONG} array into Go struct field idToken.at_hash of type string"),
        ({"iat": None}, 'strconv.ParseFloat: parsing "": invalid syntax'),
        ({"exp": None}, 'strconv.ParseFloat: parsing "": invalid syntax'),
        ({"iat": "x"}, r'json: invalid number literal, trying to unmarshal "\"x\"" into Number'),
        ({"exp": " 1"}, r'json: invalid number literal, trying to unmarshal "\" 1\"" into Number'),
        ({"iat": True}, f"{_WRONG} bool into Go struct field idToken.iat of type json.Number"),
        ({"_claim_names": 1}, f"{_WRONG} number into Go struct field idToken._claim_names of type map[string]string"),
        (
            {"_claim_sources": []},
            f"{_WRONG} array into Go struct field idToken._claim_sources of type map[string]oidc.claimSource",
        ),
        (
            {"_claim_sources": {"s": 1}},
            f"{_WRONG} number into Go struct field idToken._claim_sources of type oidc.claimSource",
        ),
        (
            {"_claim_sources": {"s": {"endpoint": 1}}},
            f"{_WRONG} number into Go struct field claimSource._claim_sources.endpoint of type string",
        ),
    ],
)
def test_claims_of_the_wrong_type_have_the_texts_of_go(claims: dict[str, Any], text: str) -> None:
    with pytest.raises(BadClaim) as rejected:
        decode_id_token(claims)
    assert str(rejected.value) == text


def test_the_first_claim_of_the_wrong_type_is_reported_unless_a_later_time_or_audience_is_wrong() -> None:
    with pytest.raises(BadClaim, match=r"idToken\.sub"):
        decode_id_token({"sub": 1, "nonce": 2})
    with pytest.raises(BadClaim, match=r"idToken\.nonce"):
        decode_id_token({"nonce": 2, "sub": 1})
    with pytest.raises(BadClaim, match=r"idToken\.aud"):
        decode_id_token({"sub": 1, "aud": 1})
