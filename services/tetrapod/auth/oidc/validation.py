"""Validation of AuthenticationConfiguration, which also compiles its CEL expressions.

`validate` checks a whole file. `compile_authenticator` returns the compiled expressions of one authenticator. Both
reject the issuers in `disallowed`: those of the server's own service account tokens.

Upstream: ValidateAuthenticationConfiguration and CompileAndValidateJWTAuthenticator of
k8s.io/apiserver/pkg/apis/apiserver/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Final

from tetrapod.auth.oidc.expressions import (
    Expression,
    ExpressionError,
    InstantiationFailed,
    compile_claims,
    compile_user,
)
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery import field
from tetrapod.machinery.domain_paths import domain_prefixed_path
from tetrapod.machinery.field import FieldError, aggregate
from tetrapod.machinery.golang.pem import blocks
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.golang.urls import BadUrl, parse
from tetrapod.machinery.golang.x509_errors import certificate_error
from tetrapod.machinery.gvk import Object

LIMIT: Final = 64
_BOTH: Final = "claim and expression can't both be set"
_EGRESS_GATE: Final = "StructuredAuthenticationConfigurationEgressSelector"
_EMAIL: Final = (
    "claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression "
    "or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression"
)


@dataclass(frozen=True, slots=True)
class Mapper:
    """The compiled CEL expressions of one authenticator; None and () for those that the configuration does not have.

    Attributes:
        username: computes the user name from the claims.
        groups: computes the groups from the claims.
        uid: computes the uid from the claims.
        extra: compute the values of the user's extra attributes from the claims.
        claim_rules: the claimValidationRules.
        user_rules: the userValidationRules.
    """

    username: Expression | None = None
    groups: Expression | None = None
    uid: Expression | None = None
    extra: tuple[Expression, ...] = ()
    claim_rules: tuple[Expression, ...] = ()
    user_rules: tuple[Expression, ...] = ()


def validate(config: Object, disallowed: Collection[str] = ()) -> list[FieldError]:
    """Return the errors of an AuthenticationConfiguration, [] if it is valid.

    Args:
        disallowed: issuer URLs that the configuration must not contain.
    """
    listed = config.get("jwt") or []
    if len(listed) > LIMIT:
        return [field.too_many("jwt", len(listed), LIMIT)]
    errors: list[FieldError] = []
    seen: dict[str, set[str]] = {"url": set(), "discoveryURL": set()}
    for i, authenticator in enumerate(listed):
        path = field.index("jwt", i)
        errors += _Compiler(path).authenticator(authenticator, disallowed)
        issuer = authenticator.get("issuer") or {}
        for name, known in seen.items():
            url = issuer.get(name) or ""
            if url in known and (url or name == "url"):
                errors.append(field.duplicate(f"{path}.issuer.{name}", url))
            known.add(url)
    anonymous = config.get("anonymous")
    if anonymous is not None and not anonymous.get("enabled") and anonymous.get("conditions"):
        shown = [{"Path": condition.get("path") or ""} for condition in anonymous["conditions"]]
        errors.append(
            field.invalid("anonymous.conditions", shown, "enabled should be set to true when conditions are defined")
        )
    return errors


def compile_authenticator(authenticator: Object, disallowed: Collection[str] = ()) -> Mapper:
    """Validate one authenticator and return its compiled expressions.

    Args:
        authenticator: an entry of `jwt`.
        disallowed: issuer URLs that it must not have.

    Raises:
        ValueError: it is invalid; the text has all errors.
    """
    compiler = _Compiler("")
    if errors := compiler.authenticator(authenticator, disallowed):
        raise ValueError(aggregate(errors))
    return compiler.mapper()


class _Compiler:
    """The validation of one authenticator, which also collects its compiled expressions.

    Args:
        path: the field path of the authenticator, for the errors.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._single: dict[str, Expression] = {}
        self._lists: dict[str, list[Expression]] = {"extra": [], "claim_rules": [], "user_rules": []}

    def mapper(self) -> Mapper:
        lists = {name: tuple(expressions) for name, expressions in self._lists.items()}
        return Mapper(self._single.get("username"), self._single.get("groups"), self._single.get("uid"), **lists)

    def authenticator(self, authenticator: Object, disallowed: Collection[str]) -> list[FieldError]:
        at = self._child
        return [
            *_issuer_errors(authenticator.get("issuer") or {}, disallowed, at("issuer")),
            *self._claim_rules(authenticator.get("claimValidationRules") or [], at("claimValidationRules")),
            *self._mappings(authenticator.get("claimMappings") or {}, at("claimMappings")),
            *self._user_rules(authenticator.get("userValidationRules") or [], at("userValidationRules")),
        ]

    def _child(self, name: str) -> str:
        return field.child(self._path, name)

    def _claim_rules(self, rules: list[Object], root: str) -> list[FieldError]:
        errors: list[FieldError] = []
        claims, expressions = set(), set()
        for i, rule in enumerate(rules):
            path = field.index(root, i)
            claim, expression = rule.get("claim") or "", rule.get("expression") or ""
            if claim and expression:
                errors.append(field.invalid(path, claim, _BOTH))
            elif claim:
                if message := rule.get("message"):
                    errors.append(field.invalid(f"{path}.message", message, "may not be specified when claim is set"))
                if claim in claims:
                    errors.append(field.duplicate(f"{path}.claim", claim))
                claims.add(claim)
            elif expression:
                if value := rule.get("requiredValue"):
                    errors.append(
                        field.invalid(f"{path}.requiredValue", value, "may not be specified when expression is set")
                    )
                if expression in expressions:
                    errors.append(field.duplicate(f"{path}.expression", expression))
                    continue
                expressions.add(expression)
                message = rule.get("message") or ""
                errors += self._compile(
                    "claim_rules", expression, f"{path}.expression", partial(compile_claims, about=message, rule=True)
                )
            else:
                errors.append(field.required(path, "claim or expression is required"))
        return errors

    def _mappings(self, mappings: Object, root: str) -> list[FieldError]:
        errors = self._prefixed("username", mappings.get("username") or {}, f"{root}.username", needed=True)
        errors += self._prefixed("groups", mappings.get("groups") or {}, f"{root}.groups", needed=False)
        uid = mappings.get("uid") or {}
        if uid.get("claim") and uid.get("expression"):
            errors.append(field.invalid(f"{root}.uid", "", _BOTH))
        elif uid.get("expression"):
            errors += self._compile("uid", uid["expression"], f"{root}.uid.expression", compile_claims)
        errors += self._extra(mappings.get("extra") or [], f"{root}.extra")
        username = self._single.get("username")
        if username is not None and username.program.selects("email", "claims") and not self._verifies_email():
            errors.append(field.invalid(f"{root}.username.expression", username.text, _EMAIL))
        return errors

    def _verifies_email(self) -> bool:
        expressions = [self._single["username"], *self._lists["extra"], *self._lists["claim_rules"]]
        return any(expression.program.selects("email_verified", "claims") for expression in expressions)

    def _prefixed(self, name: str, mapping: Object, path: str, *, needed: bool) -> list[FieldError]:
        claim, expression, prefix = mapping.get("claim") or "", mapping.get("expression") or "", mapping.get("prefix")
        if claim and expression:
            return [field.invalid(path, "", _BOTH)]
        if expression:
            errors = []
            if prefix is not None:
                errors.append(field.invalid(f"{path}.prefix", prefix, "may not be specified when expression is set"))
            errors += self._compile(name, expression, f"{path}.expression", compile_claims)
            if errors:
                self._single.pop(name, None)
            return errors
        if claim and prefix is None:
            text = "prefix is required when claim is set. It can be set to an empty string to disable prefixing"
            return [field.required(f"{path}.prefix", text)]
        return [field.required(path, "claim or expression is required")] if needed and not claim else []

    def _extra(self, listed: list[Object], root: str) -> list[FieldError]:
        errors: list[FieldError] = []
        seen = set()
        for i, mapping in enumerate(listed):
            path = field.index(root, i)
            key, expression = mapping.get("key") or "", mapping.get("valueExpression") or ""
            errors += domain_prefixed_path(key, f"{path}.key")
            if key != key.lower():
                errors.append(field.invalid(f"{path}.key", key, "must be lowercase"))
            if _reserved(key):
                text = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"
                errors.append(field.invalid(f"{path}.key", key, text))
            if key in seen:
                errors.append(field.duplicate(f"{path}.key", key))
                continue
            seen.add(key)
            if not expression:
                errors.append(field.required(f"{path}.valueExpression"))
                continue
            errors += self._compile("extra", expression, f"{path}.valueExpression", partial(compile_claims, about=key))
        return errors

    def _user_rules(self, rules: list[Object], root: str) -> list[FieldError]:
        errors: list[FieldError] = []
        seen = set()
        for i, rule in enumerate(rules):
            path = f"{field.index(root, i)}.expression"
            expression, message = rule.get("expression") or "", rule.get("message") or ""
            if not expression:
                errors.append(field.required(path))
            elif expression in seen:
                errors.append(field.duplicate(path, expression))
            else:
                seen.add(expression)
                errors += self._compile("user_rules", expression, path, partial(compile_user, about=message))
        return errors

    def _compile(self, name: str, text: str, path: str, make: Callable[[str], Expression]) -> list[FieldError]:
        try:
            expression = make(text)
        except InstantiationFailed as error:
            return [field.internal_error(path, str(error))]
        except ExpressionError as error:
            return [field.invalid(path, text, str(error))]
        if name in self._lists:
            self._lists[name].append(expression)
        else:
            self._single[name] = expression
        return []


def _issuer_errors(issuer: Object, disallowed: Collection[str], path: str) -> list[FieldError]:
    url, discovery = issuer.get("url") or "", issuer.get("discoveryURL") or ""
    errors = _url_errors(url, disallowed, f"{path}.url") if url else [field.required(f"{path}.url")]
    if discovery:
        if url and url.rstrip("/") == discovery.rstrip("/"):
            errors.append(field.invalid(f"{path}.discoveryURL", discovery, "discoveryURL must be different from URL"))
        errors += _url_errors(discovery, (), f"{path}.discoveryURL")
    errors += _audience_errors(issuer.get("audiences") or [], issuer.get("audienceMatchPolicy") or "", path)
    if (authority := issuer.get("certificateAuthority")) and (text := _authority_error(authority)):
        errors.append(field.invalid(f"{path}.certificateAuthority", "<omitted>", text))
    egress = issuer.get("egressSelectorType")
    if egress and not feature_gates.enabled(_EGRESS_GATE):
        text = f"egress selector is not supported when {_EGRESS_GATE} feature gate is disabled"
        errors.append(field.invalid(f"{path}.egressSelectorType", egress, text))
    if egress and egress not in ("controlplane", "cluster"):
        text = "egress selector must be either controlplane or cluster"
        errors.append(field.invalid(f"{path}.egressSelectorType", egress, text))
    return errors


def _url_errors(url: str, disallowed: Collection[str], path: str) -> list[FieldError]:
    errors = []
    if url in disallowed:
        listed = " ".join(sorted(disallowed))
        errors.append(field.invalid(path, url, f"URL must not overlap with disallowed issuers: [{listed}]"))
    try:
        parsed = parse(url)
    except BadUrl as error:
        return [*errors, field.invalid(path, url, f"parse {go_quote(url)}: {error}")]
    checks = (
        (parsed.scheme != "https", "URL scheme must be https"),
        (bool(parsed.user), "URL must not contain a username or password"),
        (bool(parsed.query), "URL must not contain a query"),
        (bool(parsed.fragment), "URL must not contain a fragment"),
    )
    return errors + [field.invalid(path, url, text) for wrong, text in checks if wrong]


def _audience_errors(audiences: list[str], policy: str, path: str) -> list[FieldError]:
    root = f"{path}.audiences"
    if not audiences:
        return [field.required(root, f"at least one {root} is required")]
    errors: list[FieldError] = []
    seen = set()
    for i, audience in enumerate(audiences):
        if not audience:
            errors.append(field.required(field.index(root, i)))
        if audience in seen:
            errors.append(field.duplicate(field.index(root, i), audience))
        seen.add(audience)
    if len(audiences) > 1 and policy != "MatchAny":
        errors.append(
            field.invalid(
                f"{path}.audienceMatchPolicy", policy, "audienceMatchPolicy must be MatchAny for multiple audiences"
            )
        )
    if len(audiences) == 1 and policy not in ("", "MatchAny"):
        text = "audienceMatchPolicy must be empty or MatchAny for single audience"
        errors.append(field.invalid(f"{path}.audienceMatchPolicy", policy, text))
    return errors


def _authority_error(pem: str) -> str:
    """Return Go's error text for a bundle of certificates, or "". Each must be well-formed, and one must exist.

    PEM blocks of other types, with headers or with malformed base64 are ignored.

    Upstream: k8s.io/client-go/util/cert/pem.go, ParseCertsPEM.
    """
    from cryptography import x509

    has_certificate = False
    for block in blocks(pem.encode()):
        if block.type != "CERTIFICATE" or block.headers:
            continue
        try:
            x509.load_der_x509_certificate(block.content)
        except (ValueError, x509.InvalidVersion):
            return certificate_error(block.content)
        has_certificate = True
    return "" if has_certificate else "data does not contain any valid RSA or ECDSA certificates"


def _reserved(key: str) -> bool:
    domain, slash, _ = key.partition("/")
    return bool(slash) and f".{domain}".endswith((".kubernetes.io", ".k8s.io"))
