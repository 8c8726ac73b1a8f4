"""JWT authenticators, the token webhook and anonymous access, from --authentication-config or from flags.

Upstream: pkg/kubeapiserver/options/authentication.go, BuiltInAuthenticationOptions (Validate, ToAuthenticationConfig)
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tetrapod.apps.options.options import Options
from tetrapod.generic.authentication.tokencache import SUCCESS_SECONDS
from tetrapod.generic.configuration.files import read
from tetrapod.machinery.field import aggregate
from tetrapod.machinery.golang.durations import format_duration
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object

if TYPE_CHECKING:
    from tetrapod.auth.oidc.configuration import JwtOptions
    from tetrapod.auth.service import TokenWebhook

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AnonymousAccess:
    """Whether requests without credentials are accepted, and on which paths; empty `paths` mean all."""

    allowed: bool
    paths: tuple[str, ...] = ()


def anonymous_access(options: Options, config: Object | None = None) -> AnonymousAccess:
    """Return the anonymous access that --anonymous-auth or the AuthenticationConfiguration configures.

    With the authorizer AlwaysAllow, anonymous access that only this flag enables (also by default) is disabled, with a
    warning in the log.

    Args:
        options: the options.
        config: the AuthenticationConfiguration; None to read its file.

    Raises:
        ValueError: the flag and the file exclude each other, or the file is invalid.
    """
    if config is None:
        config = _configuration(options)[0]
    section = config.get("anonymous")
    if section is not None:
        if "anonymous-auth" in options.given:
            text = (
                "--anonymous-auth flag cannot be set when anonymous field is configured in authentication "
                "configuration file"
            )
            raise ValueError(f"anonymous: Forbidden: {text}")
        paths = tuple(condition.get("path") or "" for condition in section.get("conditions") or ())
        return AnonymousAccess(bool(section.get("enabled")), paths)
    if options.authentication.anonymous_auth and "AlwaysAllow" in options.authorization.mode:
        log.warning(
            "AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. "
            "You should use a different authorizer"
        )
        return AnonymousAccess(False)
    return AnonymousAccess(options.authentication.anonymous_auth)


def jwt_options(options: Options) -> tuple[JwtOptions | None, AnonymousAccess]:
    """Return the options of JWT authenticators, and the anonymous access.

    The options are None if neither --authentication-config nor --oidc-issuer-url is set.

    Raises:
        ValueError: the configuration is invalid; the text is upstream's.
    """
    _check_flags(options)
    if not options.authentication.config and not options.authentication.oidc.issuer_url:
        return None, anonymous_access(options, {})
    from tetrapod.auth.oidc.configuration import ALL_ALGORITHMS, JwtOptions
    from tetrapod.auth.oidc.validation import validate  # imports CEL, so only here

    config, data = _configuration(options)
    access = anonymous_access(options, config)
    if errors := validate(config):
        raise ValueError(f"invalid authentication configuration: {aggregate(errors)}")
    algorithms = ALL_ALGORITHMS if options.authentication.config else options.authentication.oidc.signing_algs
    return JwtOptions(config, options.authentication.config, data, algorithms), access


def _check_flags(options: Options) -> None:
    flagged = any(name.startswith("oidc-") for name in options.given)
    if options.authentication.config:
        if flagged:
            raise ValueError("authentication-config file and oidc-* flags are mutually exclusive")
    elif flagged and not (options.authentication.oidc.issuer_url and options.authentication.oidc.client_id):
        raise ValueError("oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set")


def _configuration(options: Options) -> tuple[Object, str]:
    """Return the AuthenticationConfiguration, and the text of its file; "" if it is made from the flags.

    Raises:
        ValueError: the file is invalid.
    """
    path = options.authentication.config
    if path:
        from tetrapod.auth.oidc.configuration import load_configuration

        try:
            data = read(path)
            return load_configuration(data), data.decode()
        except ValueError as error:
            raise ValueError(
                f"failed to load authentication configuration from file {go_quote(path)}: {error}"
            ) from None
    if not options.authentication.oidc.issuer_url:
        return {}, ""
    from tetrapod.auth.oidc.configuration import OidcFlags, from_flags

    oidc = options.authentication.oidc
    flags = OidcFlags(
        issuer_url=oidc.issuer_url,
        client_id=oidc.client_id,
        ca=read(oidc.ca_file).decode() if oidc.ca_file else "",
        username_claim=oidc.username_claim,
        username_prefix=oidc.username_prefix,
        groups_claim=oidc.groups_claim,
        groups_prefix=oidc.groups_prefix,
        signing_algs=oidc.signing_algs,
        required_claims=_required_claims(oidc.required_claim),
    )
    return from_flags(flags), ""


def _required_claims(pairs: tuple[str, ...]) -> dict[str, str]:
    claims = {}
    for pair in pairs:
        claim, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(
                f"malformed pair, expect string=string: invalid argument {go_quote(pair)} for --oidc-required-claim"
            )
        claims[claim.strip()] = value.strip()
    return claims


def token_webhook(options: Options) -> TokenWebhook | None:
    """Return the options of the webhook that reviews bearer tokens, or None if none is configured.

    Raises:
        ValueError: the kubeconfig is invalid.
    """
    flags = options.authentication.token_webhook
    if not flags.config_file:
        return None
    from tetrapod.auth.service import TokenWebhook
    from tetrapod.generic.webhook.kubeconfig import read_kubeconfig

    ttl = flags.cache_ttl
    if 0 < ttl < SUCCESS_SECONDS:
        log.warning(
            "the webhook cache ttl of %s is shorter than the overall cache ttl of %s for successful token "
            "authentication attempts.",
            format_duration(ttl),
            format_duration(SUCCESS_SECONDS),
        )
    target = read_kubeconfig(flags.config_file)
    return TokenWebhook(target, version=flags.version, ttl=ttl)
