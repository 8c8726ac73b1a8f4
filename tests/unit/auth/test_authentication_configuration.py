"""Tests of AuthenticationConfiguration files: all errors in a file are reported together, in upstream's wording."""

from __future__ import annotations

import pytest

from tetrapod.auth.oidc.configuration import OidcFlags, from_flags, load_configuration
from tetrapod.auth.oidc.validation import compile_authenticator, validate
from tetrapod.generic.certificates.authority import Authority
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery.field import aggregate

HEAD = b"apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
STRUCT = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "empty config data"),
        (b"foo: bar\n", "Object 'Kind' is missing in 'foo: bar\n'"),
        (b"[1\n", "yaml: line 1: did not find expected ',' or ']'"),
        (
            b'"x"\n',
            (
                "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go "
                f"value of type {STRUCT}"
            ),
        ),
        (
            b"apiVersion: apiserver.config.k8s.io/v2\nkind: AuthenticationConfiguration\n",
            'no kind "AuthenticationConfiguration" is registered for version "apiserver.config.k8s.io/v2" '
            'in scheme "pkg/runtime/scheme.go:111"',
        ),
        (
            b"apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n",
            "expected AuthenticationConfiguration, got *apiserver.AuthorizationConfiguration",
        ),
        (
            HEAD + b"jwt: [{issuer: {url: 3}}]\n",
            "json: cannot unmarshal number into Go struct field Issuer.jwt.issuer.url of type string",
        ),
        (
            HEAD + b"jwt: 3\nfoo: 1\n",
            (
                "json: cannot unmarshal number into Go struct field AuthenticationConfiguration.jwt of type "
                "[]v1.JWTAuthenticator"
            ),
        ),
        (
            HEAD + b"jwt: []\njwt: []\nfoo: 1\n",
            (
                "strict decoding error: yaml: unmarshal errors:\n"
                '  line 4: key "jwt" already set in map, unknown field "foo"'
            ),
        ),
        (HEAD + b"jwt: [{issuer: {foo: 1}}]\n", 'strict decoding error: unknown field "jwt[0].issuer.foo"'),
    ],
)
def test_an_invalid_file_is_rejected_with_upstreams_message(data: bytes, text: str) -> None:
    with pytest.raises(ValueError) as rejected:
        load_configuration(data)
    assert str(rejected.value) == text


def test_without_the_gate_no_issuer_selects_its_egress() -> None:
    issuer = b"""jwt:
- issuer: {url: "https://x", audiences: [a], egressSelectorType: %b}
  claimMappings: {username: {claim: sub, prefix: ""}}
"""
    path, gate = "jwt[0].issuer.egressSelectorType", "StructuredAuthenticationConfigurationEgressSelector"
    assert validate(load_configuration(HEAD + issuer % b"cluster")) == []
    feature_gates.configure([f"{gate}=false"])
    try:
        assert list(map(str, validate(load_configuration(HEAD + issuer % b"bar")))) == [
            f'{path}: Invalid value: "bar": egress selector is not supported when {gate} feature gate is disabled',
            f'{path}: Invalid value: "bar": egress selector must be either controlplane or cluster',
        ]
        assert len(validate(load_configuration(HEAD + issuer % b"cluster"))) == 1
    finally:
        feature_gates.configure([])


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_every_version_is_read(version: str) -> None:
    config = load_configuration(
        f"apiVersion: apiserver.config.k8s.io/{version}\nkind: AuthenticationConfiguration\njwt: []\n".encode()
    )
    assert validate(config) == []


def test_all_that_is_wrong_is_reported() -> None:
    config = load_configuration(
        HEAD
        + b"""jwt:
- issuer: {url: "https://x", discoveryURL: "https://x/", audiences: [a,b,a,""], certificateAuthority: foo, \
egressSelectorType: bar}
  claimMappings:
    username: {expression: claims.email}
    uid: {expression: "claims.foo +"}
    extra: [{key: Foo, valueExpression: "1"}]
  userValidationRules: [{expression: user.foo}]
  claimValidationRules: [{expression: "1 + 1"}, {}, {expression: claims.x}]
"""
    )
    assert aggregate(validate(config)) == (
        '[jwt[0].issuer.discoveryURL: Invalid value: "https://x/": discoveryURL must be different from URL, '
        'jwt[0].issuer.audiences[2]: Duplicate value: "a", jwt[0].issuer.audiences[3]: Required value, '
        'jwt[0].issuer.audienceMatchPolicy: Invalid value: "": audienceMatchPolicy must be MatchAny '
        "for multiple audiences, "
        'jwt[0].issuer.certificateAuthority: Invalid value: "<omitted>": data does not contain any '
        "valid RSA or ECDSA certificates, "
        'jwt[0].issuer.egressSelectorType: Invalid value: "bar": egress selector must be either '
        "controlplane or cluster, "
        'jwt[0].claimValidationRules[0].expression: Invalid value: "1 + 1": must evaluate to bool, '
        "jwt[0].claimValidationRules[1]: Required value: claim or expression is required, "
        'jwt[0].claimValidationRules[2].expression: Invalid value: "claims.x": must evaluate to bool, '
        'jwt[0].claimMappings.uid.expression: Invalid value: "claims.foo +": compilation failed: ERROR: <input>:1:13: '
        "Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', "
        "NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | claims.foo +\n | ............^, "
        'jwt[0].claimMappings.extra[0].key: Invalid value: "Foo": must be a domain-prefixed path (such as '
        '"acme.io/foo"), '
        'jwt[0].claimMappings.extra[0].key: Invalid value: "Foo": must be lowercase, '
        'jwt[0].claimMappings.username.expression: Invalid value: "claims.email": claims.email_verified must be used '
        "in claimMappings.username.expression or claimMappings.extra[*].valueExpression or "
        "claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression, "
        'jwt[0].userValidationRules[0].expression: Invalid value: "user.foo": compilation failed: ERROR: <input>:1:5: '
        "undefined field 'foo'\n | user.foo\n | ....^]"
    )


@pytest.mark.parametrize(
    ("mappings", "text"),
    [
        (
            '{username: {expression: claims.email, prefix: ""}}',
            'jwt[0].claimMappings.username.prefix: Invalid value: "": may not be specified when expression is set',
        ),
        (
            """{username: {expression: "claims.sub.find('[')"}}""",
            "jwt[0].claimMappings.username.expression: Internal error: program instantiation failed: error parsing "
            "regexp: missing closing ]: `[`",
        ),
    ],
)
def test_an_invalid_username_expression_is_reported_once(mappings: str, text: str) -> None:
    issuer = '{url: "https://x", audiences: [a]}'
    config = load_configuration(HEAD + f"jwt: [{{issuer: {issuer}, claimMappings: {mappings}}}]\n".encode())
    assert aggregate(validate(config)) == text


def test_certificates_of_an_issuer_are_read_as_in_go() -> None:
    good = Authority.create("ca").certificate_pem.decode()
    malformed = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    none = "data does not contain any valid RSA or ECDSA certificates"
    bundles = {
        good: "",
        f"comment\n{good}": "",
        good.replace("\n", "\r\n"): "",
        malformed.replace("CERTIFICATE", "OTHER") + good: "",
        malformed: "x509: malformed certificate",
        good + malformed: "x509: malformed certificate",
        good.replace("-----\n", "-----\nA: b\n\n", 1): none,
        f" {good}": none,
    }
    for bundle, text in bundles.items():
        issuer = {"url": "https://x", "audiences": ["a"], "certificateAuthority": bundle}
        mappings = {"username": {"claim": "sub", "prefix": ""}}
        errors = validate({"jwt": [{"issuer": issuer, "claimMappings": mappings}]})
        path = "jwt[0].issuer.certificateAuthority"
        assert list(map(str, errors)) == ([f'{path}: Invalid value: "<omitted>": {text}'] if text else []), bundle


def test_conditions_need_anonymous_access() -> None:
    config = load_configuration(HEAD + b"anonymous: {enabled: false, conditions: [{path: /livez}]}\n")
    assert aggregate(validate(config)) == (
        'anonymous.conditions: Invalid value: [{"Path":"/livez"}]: enabled should be set to true '
        "when conditions are defined"
    )


def test_the_servers_own_issuer_is_rejected_as_duplicate() -> None:
    authenticator = from_flags(OidcFlags("https://kubernetes.default.svc", "a"))["jwt"][0]
    with pytest.raises(ValueError) as rejected:
        compile_authenticator(authenticator, ["https://kubernetes.default.svc"])
    assert str(rejected.value) == (
        'issuer.url: Invalid value: "https://kubernetes.default.svc": URL must not overlap with disallowed issuers: '
        "[https://kubernetes.default.svc]"
    )


@pytest.mark.parametrize(
    ("claim", "prefix", "made"),
    [("sub", "", "https://x#"), ("email", "", ""), ("sub", "-", ""), ("email", "-", ""), ("sub", "o:", "o:")],
)
def test_names_by_flags_are_prefixed_by_the_issuer(claim: str, prefix: str, made: str) -> None:
    config = from_flags(OidcFlags("https://x", "a", username_claim=claim, username_prefix=prefix))
    assert config["jwt"][0]["claimMappings"]["username"] == {"claim": claim, "prefix": made}


@pytest.mark.parametrize(
    ("expression", "verified"),
    [
        ("claims.email", False),
        ("claims.?email.orValue('')", False),
        ("has(claims.email) ? claims.email : ''", False),
        ("claims.email_verified ? claims.email : ''", True),
        ("claims.?email_verified.orValue(false) ? claims.email : ''", True),
        ("claims.x.email", True),  # that of another issuer
        ("[claims.email].map(x, x)[0]", False),
        ("{'email_verified': claims.email}.email_verified", False),
    ],
)
def test_an_email_as_username_requires_email_verified(expression: str, verified: bool) -> None:
    config = from_flags(OidcFlags("https://x", "a"))
    config["jwt"][0]["claimMappings"]["username"] = {"expression": expression}
    assert (validate(config) == []) is verified


@pytest.mark.parametrize(
    ("expression", "at"),
    [
        ("claims.g.exists(x, x == 'a')", 7),
        ("claims.?g.orValue([]).map(x, x).size() == 1", 18),
        ("claims['g'].all(x, true)", 7),
        ("claims.g.all(i, v, true)", 7),
        ("dyn(claims.g).all(x, true)", 0),
        ("claims.g.h.all(x, true)", 0),  # the content of a claim is dynamic
        ("claims.all(name, name != '')", 0),
    ],
)
def test_claims_are_dynamic_values(expression: str, at: int) -> None:
    config = from_flags(OidcFlags("https://x", "a"))
    config["jwt"][0]["claimValidationRules"] = [{"expression": expression}]
    text = (
        f"ERROR: <input>:1:{at}: expression of type 'any' cannot be range of a comprehension (must "
        "be list, map, or dynamic)"
    )
    assert (text in aggregate(validate(config))) is bool(at)
