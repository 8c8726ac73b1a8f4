"""The options of the auth service, from the flags. Files that flags name are read here; errors name the flag."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import click

from tetrapod.apps.options.options import Options
from tetrapod.apps.wiring.addresses import external_address
from tetrapod.apps.wiring.authentication import jwt_options, token_webhook
from tetrapod.apps.wiring.authentication_trust import header_names
from tetrapod.apps.wiring.authorization import authorization_options
from tetrapod.apps.wiring.external_signer import external_signer
from tetrapod.apps.wiring.files import read_file
from tetrapod.auth.service import SERVICES_GROUP, AuthOptions
from tetrapod.auth.tokens.issuer import EXTENDED_SECONDS, WARN_ONLY_SECONDS
from tetrapod.auth.tokens.keys import PrivateKey, VerificationKey, load_signing_key, load_verification_keys
from tetrapod.auth.tokens.oidc import JWKS_PATH
from tetrapod.auth.tokens.static import read_token_file
from tetrapod.generic.authentication.certificates import CertificatePool
from tetrapod.generic.egress.selector import NO_EGRESS, EgressSelector
from tetrapod.machinery.golang.durations import format_duration
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.golang.urls import url_error
from tetrapod.machinery.user import UserInfo

log = logging.getLogger(__name__)
_SHORTEST_TOKEN: Final = 3600
_LONGEST_TOKEN: Final = 1 << 32
_MAXIMUM: Final = "service-account-max-token-expiration"


def auth_options(
    options: Options,
    clients: CertificatePool,
    proxies: CertificatePool,
    *,
    reserve_services: bool,
    egress: EgressSelector = NO_EGRESS,
) -> AuthOptions:
    """Return the options of the auth service.

    Args:
        options: the options of the process.
        clients: the CAs of client certificates.
        proxies: the CAs of front proxies.
        reserve_services: whether users connect to this server directly. Client certificates then cannot grant
            SERVICES_GROUP.
        egress: the egress selector.

    Raises:
        click.ClickException, ValueError: a flag or a file is invalid.
    """
    jwt, anonymous = jwt_options(options)
    flags = options.authentication
    accounts, signer = flags.service_accounts, external_signer(flags.service_accounts)
    max_token_expiration = _max_token_expiration(options) or (signer.max_lifetime if signer else 0)
    if accounts.extend_token_expiration:
        _warn_about_extension(max_token_expiration, signer is not None)
    return AuthOptions(
        issuers=_issuers(accounts.issuer),
        audiences=flags.api_audiences,
        signing_key=None if signer else _signing_key(accounts.signing_key_file or str(options.pki / "sa.key")),
        external_signer=signer,
        verification_keys=_verification_keys(flags.service_accounts.key_file),
        jwks_uri=_jwks_uri(options),
        max_token_expiration=max_token_expiration,
        extend_token_expiration=accounts.extend_token_expiration,
        max_extended_expiration=min(signer.max_lifetime, EXTENDED_SECONDS) if signer else EXTENDED_SECONDS,
        static_tokens=_static_tokens(flags.token_auth_file),
        bootstrap_tokens=flags.enable_bootstrap_token_auth,
        client_authorities=clients,
        proxy_authorities=proxies,
        requestheader_allowed_names=flags.request_header.allowed_names,
        requestheader_names=header_names(flags.request_header, of_peers=not reserve_services),
        token_webhook=token_webhook(options),
        jwt=jwt,
        anonymous=anonymous.allowed,
        anonymous_paths=anonymous.paths,
        authorization=authorization_options(options),
        controllers=options.tetrapod.controllers,
        reserved_groups=(SERVICES_GROUP,) if reserve_services else (),
        services_apart=not reserve_services,
        egress=egress,
    )


def _issuers(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of --service-account-issuer. A flag without a value gives no values.

    Upstream: BuiltInAuthenticationOptions.Validate

    Raises:
        click.ClickException: the flag is missing, a value is given twice, or a value with a colon is not a URL.
    """
    if not values:
        raise click.ClickException("service-account-issuer should not be an empty string")
    for number, issuer in enumerate(values):
        if ":" in issuer and (error := url_error(issuer)):
            text = f"contained a ':' but was not a valid URL: {error}"
            raise click.ClickException(f"service-account-issuer {go_quote(issuer)} {text}")
        if issuer in values[:number]:
            raise click.ClickException(f"service-account-issuer {go_quote(issuer)} is already specified")
    return values


def _jwks_uri(options: Options) -> str:
    """Return the URI of the key set: --service-account-jwks-uri, or else one at the external address of the server.

    Upstream: NewOpenIDMetadataProvider

    Raises:
        click.ClickException: the flag has a URI that is not https.
    """
    given = options.authentication.service_accounts.jwks_uri
    if given and urlsplit(given).scheme != "https":
        raise click.ClickException(f"service-account-jwks-uri requires https scheme, parsed as: {given}")
    return given or f"https://{external_address(options)}{JWKS_PATH}"


def _max_token_expiration(options: Options) -> int:
    """Return --service-account-max-token-expiration in seconds; 0 for no limit.

    Upstream: pkg/controlplane/apiserver/options/options.go, Complete

    Raises:
        click.ClickException: the limit is out of range.
    """
    seconds = options.authentication.service_accounts.max_token_expiration
    if seconds and not _SHORTEST_TOKEN <= seconds <= _LONGEST_TOKEN:
        raise click.ClickException(f"the {_MAXIMUM} must be between 1 hour and 2^32 seconds")
    return int(seconds)


def _warn_about_extension(maximum: int, external: bool) -> None:
    """Log warnings if extended tokens have another lifetime than clients are prepared for.

    Args:
        maximum: the longest lifetime of tokens in seconds; 0 for no limit.
        external: whether a plugin sets it.
    """
    extending, shown = "service-account-extend-token-expiration is true", format_duration(maximum)
    limited = "token lifetime supported by external-jwt-signer must be" if external else f"{_MAXIMUM} must be set"
    capped = (
        "tokens validity will be caped at the smaller of %d seconds and maximum token lifetime supported by "
        "external-jwt-signer (%s)"
        if external
        else f"enabling tokens valid up to %d seconds, which is longer than {_MAXIMUM} set to %s"
    )
    if 0 < maximum < WARN_ONLY_SECONDS:
        text = f"in order to correctly trigger safe transition logic, {limited} longer than %d seconds (currently %s)"
        log.warning(f"{extending}, {text}", WARN_ONLY_SECONDS, shown)
    if 0 < maximum < EXTENDED_SECONDS:
        log.warning(f"{extending}, {capped}", EXTENDED_SECONDS, shown)


def _signing_key(file: str) -> PrivateKey:
    pem = read_file(file, "service-account-signing-key-file")
    try:
        return load_signing_key(pem)
    except ValueError as error:
        text = f"failed to parse service-account-issuer-key-file: error reading private key file {file}: {error}"
        raise click.ClickException(text) from None


def _verification_keys(files: Sequence[str]) -> list[VerificationKey]:
    keys: list[VerificationKey] = []
    for file in files:
        pem = read_file(file, "service-account-key-file")
        try:
            keys += load_verification_keys(pem)
        except ValueError as error:
            raise click.ClickException(f"error reading public key file {file}: {error}") from None
    return keys


def _static_tokens(file: str) -> dict[str, UserInfo]:
    if not file:
        return {}
    try:
        return read_token_file(read_file(file, "token-auth-file").decode())
    except ValueError as error:
        raise click.ClickException(f"--token-auth-file: {file}: {error}") from None
