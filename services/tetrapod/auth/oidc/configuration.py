"""AuthenticationConfiguration files, and the conversion of the `--oidc-*` flags to such a configuration.

Upstream: k8s.io/apiserver/pkg/apis/apiserver/{v1,v1beta1,v1alpha1}/types.go,
pkg/kubeapiserver/options/authentication.go.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tetrapod.generic.configuration import schemas
from tetrapod.generic.configuration.loading import Kinds, load
from tetrapod.generic.configuration.schemas import POINTER, boolean, kind, list_of, string, strings, struct
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema_node import SchemaNode

KIND: Final = "AuthenticationConfiguration"
GROUP: Final = "apiserver.config.k8s.io"
VERSIONS: Final = ("v1", "v1beta1", "v1alpha1")
ALL_ALGORITHMS: Final = ("ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")
"""The algorithms of tokens whose authenticator comes from a configuration file: asymmetric ones only, and never
`none`.
"""


@dataclass(frozen=True, slots=True)
class OidcFlags:
    """The values of the --oidc-* flags, with the content of the CA file."""

    issuer_url: str = ""
    client_id: str = ""
    ca: str = ""  # the content of --oidc-ca-file
    username_claim: str = "sub"
    username_prefix: str = ""
    groups_claim: str = ""
    groups_prefix: str = ""
    signing_algs: Sequence[str] = ("RS256",)
    required_claims: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JwtOptions:
    """The options of `JwtAuthenticators`.

    Attributes:
        config: the AuthenticationConfiguration, read from `file` or made from the flags.
        file: the path of the configuration file; "" if the flags are used.
        data: the content of the file, to detect changes.
        algorithms: the accepted signing algorithms.
        audiences: the audiences of this API server.
        disallowed: the issuer URLs that entries must not have: those of service account tokens.
    """

    config: Object
    file: str = ""
    data: str = ""
    algorithms: Sequence[str] = ALL_ALGORITHMS
    audiences: tuple[str, ...] = ()
    disallowed: Collection[str] = ()


def load_configuration(data: bytes) -> Object:
    """Decode an AuthenticationConfiguration file. `validate` checks its values.

    Raises:
        ValueError: the file is empty or cannot be decoded; the text is upstream's.
    """
    if not data:
        raise ValueError("empty config data")
    obj = load(data, _kinds())
    if obj["kind"] != KIND:
        raise ValueError(f"expected {KIND}, got *apiserver.{obj['kind']}")
    return obj


def from_flags(flags: OidcFlags) -> Object:
    """Return the AuthenticationConfiguration that upstream makes of the flags.

    Without an issuer or a client id the result is {}, which has no authenticators.
    """
    if not flags.issuer_url or not flags.client_id:
        return {}
    issuer: Object = {"url": flags.issuer_url, "audiences": [flags.client_id]}
    if flags.ca:
        issuer["certificateAuthority"] = flags.ca
    mappings: Object = {"username": {"claim": flags.username_claim, "prefix": _username_prefix(flags)}}
    if flags.groups_claim:
        mappings["groups"] = {"claim": flags.groups_claim, "prefix": flags.groups_prefix}
    rules = [{"claim": claim, "requiredValue": value} for claim, value in flags.required_claims.items()]
    return {"jwt": [{"issuer": issuer, "claimMappings": mappings, "claimValidationRules": rules}]}


def _username_prefix(flags: OidcFlags) -> str:
    """Return the prefix of user names for --oidc-username-prefix.

    If the flag is unset, it is the issuer and "#", or "" for the claim `email`. "-" means no prefix.
    """
    if flags.username_prefix == "-":
        return ""
    if not flags.username_prefix and flags.username_claim != "email":
        return f"{flags.issuer_url}#"
    return flags.username_prefix


def _kinds() -> Kinds:
    kinds: dict[tuple[str, str], SchemaNode] = {}
    for version in VERSIONS:
        kinds[f"{GROUP}/{version}", KIND] = _shape(version)
        kinds[f"{GROUP}/{version}", "AuthorizationConfiguration"] = kind(
            "AuthorizationConfiguration", authorizers=schemas.raw()
        )
    kinds[f"{GROUP}/v1", "EncryptionConfiguration"] = kinds["v1", "EncryptionConfig"] = kind(
        "EncryptionConfiguration", resources=schemas.raw()
    )
    return kinds


def _shape(version: str) -> SchemaNode:
    issuer = struct(
        f"{version}.Issuer",
        url=string(),
        discoveryURL=string(),
        certificateAuthority=string(),
        audiences=strings(),
        audienceMatchPolicy=string(),
        egressSelectorType=string(),
    )
    prefixed = struct(
        f"{version}.PrefixedClaimOrExpression", claim=string(), prefix=string(POINTER), expression=string()
    )
    mappings = struct(
        f"{version}.ClaimMappings",
        username=prefixed,
        groups=prefixed,
        uid=struct(f"{version}.ClaimOrExpression", claim=string(), expression=string()),
        extra=list_of(struct(f"{version}.ExtraMapping", key=string(), valueExpression=string())),
    )
    claim_rule = struct(
        f"{version}.ClaimValidationRule", claim=string(), requiredValue=string(), expression=string(), message=string()
    )
    authenticator = struct(
        f"{version}.JWTAuthenticator",
        issuer=issuer,
        claimValidationRules=list_of(claim_rule),
        claimMappings=mappings,
        userValidationRules=list_of(struct(f"{version}.UserValidationRule", expression=string(), message=string())),
    )
    condition = struct(f"{version}.AnonymousAuthCondition", path=string())
    anonymous = struct(f"{version}.AnonymousAuthConfig", enabled=boolean(), conditions=list_of(condition))
    return kind(KIND, jwt=list_of(authenticator), anonymous=anonymous)
