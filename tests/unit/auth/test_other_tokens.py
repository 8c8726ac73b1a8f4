"""Static tokens, bootstrap tokens, and the validation of token requests and access reviews."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tetrapod.auth.reviews.access import metadata_errors, validate_subject_spec
from tetrapod.auth.reviews.selectors import parse_field_selector, parse_label_selector
from tetrapod.auth.tokens.bootstrap import BootstrapTokenAuthenticator
from tetrapod.auth.tokens.request import validate_token_request
from tetrapod.auth.tokens.static import StaticTokenAuthenticator, read_token_file

AUDIENCE = "https://kubernetes.default.svc"


async def test_static_tokens_are_for_the_server_only() -> None:
    users = read_token_file('a,alice,u-1,"g1,g2"\n\nb,bob,u-2\n,nobody,u-3\n')
    tokens = StaticTokenAuthenticator(users, [AUDIENCE])
    found = await tokens.authenticate_token("a", ())
    assert found is not None
    assert (found.user.name, found.user.uid, found.user.groups, found.audiences) == (
        "alice",
        "u-1",
        ("g1", "g2"),
        (AUDIENCE,),
    )
    assert await tokens.authenticate_token("a", ("vault",)) is None
    assert await tokens.authenticate_token("", ()) is None
    with pytest.raises(ValueError, match="at least 3 columns"):
        read_token_file("a,b\n")
    with pytest.raises(ValueError, match="line 2: field larger than field limit"):
        read_token_file(f"a,alice,u-1\nb,{'x' * 200_000},u-2\n")
    with pytest.raises(ValueError, match="unexpected end of data"):
        read_token_file('a,alice,u-1,"g1\nb,bob,u-2\n')


class Secrets:
    """A store with one bootstrap token. With `finds_any_name` it returns that Secret for every name."""

    finds_any_name = False

    def __init__(self, **data: str) -> None:
        self.secret: dict[str, Any] = {
            "metadata": {},
            "type": "bootstrap.kubernetes.io/token",
            "data": {k.replace("_", "-"): base64.b64encode(v.encode()).decode() for k, v in data.items()},
        }

    async def find(self, config: Any, namespace: str, name: str, uid: str = "") -> dict[str, Any] | None:
        return (
            self.secret
            if self.finds_any_name or (namespace, name) == ("kube-system", "bootstrap-token-abcdef")
            else None
        )


GOOD = {"token_id": "abcdef", "token_secret": "0123456789abcdef", "usage_bootstrap_authentication": "true"}


@pytest.mark.parametrize(
    ("change", "groups"),
    [
        ({}, ("system:bootstrappers",)),
        (
            {"auth_extra_groups": "system:bootstrappers:b,system:bootstrappers:a"},
            ("system:bootstrappers", "system:bootstrappers:a", "system:bootstrappers:b"),
        ),
        ({"expiration": "2099-01-01T00:00:00Z"}, ("system:bootstrappers",)),
        ({"expiration": "2020-01-01T00:00:00Z"}, None),
        ({"expiration": "tomorrow"}, None),
        ({"usage_bootstrap_authentication": "yes"}, None),
        ({"token_id": "other1"}, None),
        ({"token_secret": "0123456789abcdee"}, None),
        ({"auth_extra_groups": "system:masters"}, None),
    ],
)
async def test_a_bootstrap_token_authenticates_if_its_secret_permits_it(
    change: dict[str, str], groups: tuple[str, ...] | None
) -> None:
    tokens = BootstrapTokenAuthenticator(Secrets(**{**GOOD, **change}), [AUDIENCE])  # type: ignore[arg-type]
    result = await tokens.authenticate_token("abcdef.0123456789abcdef", ())
    expected = None if groups is None else ("system:bootstrap:abcdef", groups, (AUDIENCE,))
    assert (result and (result.user.name, result.user.groups, result.audiences)) == expected


@pytest.mark.parametrize(
    "wrong",
    [
        "abcdef.0123456789ABCDEF",
        "abcdef.0123456789abcdee",
        "abcdef.",
        "abcde0.0123456789abcdef",
        "abcdef.0123456789abcdef\n",
    ],
)
async def test_another_bootstrap_token_does_not_authenticate(wrong: str) -> None:
    secrets = Secrets(**GOOD)
    secrets.finds_any_name = True
    tokens = BootstrapTokenAuthenticator(secrets, [AUDIENCE])  # type: ignore[arg-type]
    assert await tokens.authenticate_token("abcdef.0123456789abcdef", ()) is not None
    assert await tokens.authenticate_token(wrong, ()) is None


def texts(errors: list[Any]) -> list[str]:
    return [str(error) for error in errors]


def spec(**more: Any) -> dict[str, Any]:
    return {"expirationSeconds": 3600, "audiences": ["x"], "boundObjectRef": None, **more}


def test_token_request_validation() -> None:
    assert texts(validate_token_request(spec(expirationSeconds=599))) == [
        "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"
    ]
    assert validate_token_request(spec(expirationSeconds=1 << 32)) == []
    assert texts(validate_token_request(spec(attestations={"x": ["y"]}))) == [
        (
            'spec.attestations: Invalid value: {"x":["y"]}: attestations may only be specified with a webhook bound '
            "object reference"
        )
    ]
    webhook = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "name": "x"}
    assert texts(validate_token_request(spec(boundObjectRef=webhook))) == [
        (
            "spec.attestations: Invalid value: null: webhook bound requests require exactly one "
            "admissionReviewAPIGroups attestation"
        )
    ]


def test_access_review_validation() -> None:
    assert texts(validate_subject_spec({})) == [
        "spec: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified",
        'spec.user: Invalid value: "": at least one of user or group must be specified',
    ]
    both = {"user": "a", "resourceAttributes": {}, "nonResourceAttributes": {"path": "/", "verb": "get"}}
    assert texts(validate_subject_spec(both)) == [
        (
            'spec: Invalid value: {"Path":"/","Verb":"get"}: exactly one of nonResourceAttributes or '
            "resourceAttributes must be specified"
        )
    ]
    entry = {"time": "t", "manager": "m", "operation": "Update"}
    assert texts(metadata_errors({"metadata": {"managedFields": [entry], "name": "x"}})) == [
        (
            'metadata: Invalid value: {"name":"x","managedFields":[{"manager":"m","operation":'
            '"Update","time":"t"}]}: must be empty'
        )
    ]
    assert metadata_errors({"metadata": {"managedFields": [entry], "creationTimestamp": None}}) == []


def test_unparsable_selector_requirements_are_ignored() -> None:
    one = {"key": "spec.nodeName", "operator": "In", "values": ["n1"]}
    odd = {"key": "a", "operator": "Near", "values": ["x"]}
    assert parse_field_selector({"requirements": [one, odd]}, "f") == (
        (one,),
        "f partially ignored due to parse error",
    )
    assert parse_field_selector({"requirements": [odd]}, "f") == ((), "f ignored due to parse error")
    assert parse_field_selector({"rawSelector": "spec.nodeName=n1"}, "f") == ((one,), "")
    assert parse_label_selector({"rawSelector": "a in b"}, "l") == ((), "l ignored due to parse error")
    listed = {"key": "a", "operator": "In", "values": ["b", "c"]}
    assert parse_label_selector({"requirements": [listed]}, "l") == ((listed,), "")
    assert parse_label_selector({"rawSelector": "a in (c,b),!d"}, "l").requirements == (
        listed,
        {"key": "d", "operator": "DoesNotExist"},
    )
