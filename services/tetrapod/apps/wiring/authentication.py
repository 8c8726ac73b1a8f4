"""JWT authenticators and anonymous access, by --authentication-config or by --oidc-* and --anonymous-auth.

Upstream: BuiltInAuthenticationOptions of pkg/kubeapiserver/options/authentication.go (Validate, ToAuthenticationConfig).
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
class Anonymous:
    """Whether requests without credentials are let in, and for which paths only."""

    allowed: bool
    paths: tuple[str, ...] = ()


def anonymous(options: Options, config: Object | None = None) -> Anonymous:
    """Return the options of anonymous requests from the flag, or from the file, which is read unless its content is given.

    Raises:
        ValueError
    """
    if config is None:
        config = _configuration(options)[0]
    section = config.get("anonymous")
    if section is not None:
        if "anonymous-auth" in options.given:
            text = "--anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file"
            raise ValueError(f"anonymous: Forbidden: {text}")
        paths = tuple(condition.get("path") or "" for condition in section.get("conditions") or ())
        return Anonymous(bool(section.get("enabled")), paths)
    if options.authentication.anonymous_auth and "AlwaysAllow" in options.authorization.mode:
        log.warning(
            "AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. "
            "You should use a different authorizer"
        )
        return Anonymous(False)
    return Anonymous(options.authentication.anonymous_auth)


def jwt_options(options: Options) -> tuple[JwtOptions | None, Anonymous]:
    """Return the options of JWT authentication (None if it is off), and those of anonymous requests.

    Raises:
        ValueError: with upstream's text.
    """
    _check_flags(options)
    if not options.authentication.config and not options.authentication.oidc.issuer_url:
        return None, anonymous(options, {})
    from tetrapod.auth.oidc.configuration import ALL_ALGORITHMS, JwtOptions
    from tetrapod.auth.oidc.validation import validate  # which imports CEL

    config, data = _configuration(options)
    allowed = anonymous(options, config)
    if errors := validate(config):
        raise ValueError(f"invalid authentication configuration: {aggregate(errors)}")
    algorithms = ALL_ALGORITHMS if options.authentication.config else options.authentication.oidc.signing_algs
    return JwtOptions(config, options.authentication.config, data, algorithms), allowed


def _check_flags(options: Options) -> None:
    flagged = any(name.startswith("oidc-") for name in options.given)
    if options.authentication.config:
        if flagged:
            raise ValueError("authentication-config file and oidc-* flags are mutually exclusive")
    elif flagged and not (options.authentication.oidc.issuer_url and options.authentication.oidc.client_id):
        raise ValueError("oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set")


def _configuration(options: Options) -> tuple[Object, str]:
    """Read the AuthenticationConfiguration. Return it with the text of its file."""
    path = options.authentication.config
    if path:
        from tetrapod.auth.oidc.configuration import load_configuration

        try:
            data = read(path)
            return load_configuration(data), data.decode()
        except ValueError as error:
            raise ValueError(f"failed to load authentication configuration from file {go_quote(path)}: {error}") from None
    if not options.authentication.oidc.issuer_url:
        return {}, ""
    from tetrapod.auth.oidc.configuration import OidcFlags, from_flags

    flags = OidcFlags(
        options.authentication.oidc.issuer_url,
        options.authentication.oidc.client_id,
        read(options.authentication.oidc.ca_file).decode() if options.authentication.oidc.ca_file else "",
        options.authentication.oidc.username_claim,
        options.authentication.oidc.username_prefix,
        options.authentication.oidc.groups_claim,
        options.authentication.oidc.groups_prefix,
        options.authentication.oidc.signing_algs,
        _required_claims(options.authentication.oidc.required_claim),
    )
    return from_flags(flags), ""


def _required_claims(pairs: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        claim, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"malformed pair, expect string=string: invalid argument {go_quote(pair)} for --oidc-required-claim")
        found[claim.strip()] = value.strip()
    return found


def token_webhook(options: Options) -> TokenWebhook | None:
    """Return the options of the token webhook, or None if it is not configured.

    Raises:
        ValueError: the kubeconfig is invalid.
    """
    if not options.authentication.token_webhook.config_file:
        return None
    from tetrapod.auth.service import TokenWebhook
    from tetrapod.generic.webhook.kubeconfig import read_kubeconfig

    ttl = options.authentication.token_webhook.cache_ttl
    if 0 < ttl < SUCCESS_SECONDS:
        log.warning(
            "the webhook cache ttl of %s is shorter than the overall cache ttl of %s for successful token authentication attempts.",
            format_duration(ttl),
            format_duration(SUCCESS_SECONDS),
        )
    target = read_kubeconfig(options.authentication.token_webhook.config_file)
    return TokenWebhook(target, options.authentication.token_webhook.version, ttl)
