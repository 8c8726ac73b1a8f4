"""The plugin of --service-account-signing-endpoint, which signs service account tokens.

Upstream: pkg/controlplane/apiserver/options/{options,validation}.go
"""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import click

from tetrapod.apps.options.authentication import ServiceAccountFlags
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.golang.durations import format_duration
from tetrapod.machinery.golang.quoting import go_quote

if TYPE_CHECKING:
    from tetrapod.auth.tokens.external.signer import ExternalSigner

_ABSTRACT: Final = re.compile("@([a-zA-Z0-9_-]+\\.)*[a-zA-Z0-9_-]+").fullmatch
_GATE: Final = "ExternalServiceAccountTokenSigner"
_METADATA_TIMEOUT: Final = 10.0
_SHORTEST_LIFETIME: Final = 600


def external_signer(flags: ServiceAccountFlags) -> ExternalSigner | None:
    """Return the signer plugin of --service-account-signing-endpoint, or None if the flag is not set.

    Its keys and its longest lifetime of tokens have been fetched. The plugin is called in an event loop of its own,
    because the options are read before the server runs.

    Raises:
        click.ClickException: the flags are invalid, or the plugin does not answer (within 60 seconds with its keys, and
            then 10 with its longest lifetime) or supports no
            sufficient lifetime; with upstream's texts.
    """
    if not flags.signing_endpoint:
        return None
    _check_flags(flags)
    with ThreadPoolExecutor(1) as executor:
        signer = executor.submit(asyncio.run, _connected(flags.signing_endpoint)).result()
    if signer.max_lifetime < _SHORTEST_LIFETIME:
        raise click.ClickException(
            f"max token life supported by external-jwt-signer ({signer.max_lifetime}s) is less than acceptable "
            f"(min {_SHORTEST_LIFETIME}s)"
        )
    if flags.max_token_expiration > signer.max_lifetime:
        longer, limit = (format_duration(seconds) for seconds in (flags.max_token_expiration, signer.max_lifetime))
        raise click.ClickException(
            "service-account-max-token-expiration cannot be set longer than the token expiration supported by "
            f"service-account-signing-endpoint: {longer} > {limit}"
        )
    return signer


def _check_flags(flags: ServiceAccountFlags) -> None:
    endpoint = flags.signing_endpoint
    if flags.signing_key_file:
        raise click.ClickException(
            "service-account-signing-key-file and service-account-signing-endpoint are mutually exclusive and cannot "
            "be set at the same time"
        )
    errors = []
    if flags.key_file:
        errors.append(
            "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with "
            "`--service-account-signing-endpoint` (They are mutually exclusive)"
        )
    if not feature_gates.enabled(_GATE):
        errors.append(f"setting `--service-account-signing-endpoint` requires enabling {_GATE} feature gate")
    if endpoint.startswith("@") and _ABSTRACT(endpoint) is None:
        errors.append(
            f"invalid value {go_quote(endpoint)} passed for `--service-account-signing-endpoint`, when prefixed with @ "
            "must be a valid abstract socket name"
        )
    if errors:
        raise click.ClickException(aggregate_errors(errors))


async def _connected(endpoint: str) -> ExternalSigner:
    from tetrapod.auth.tokens.external.client import SignerClient, SignerError
    from tetrapod.auth.tokens.external.key_cache import KeyCache
    from tetrapod.auth.tokens.external.signer import ExternalSigner

    client = SignerClient(endpoint)
    keys = KeyCache(client)
    context = "while setting up external-jwt-signer"
    try:
        try:
            await keys.sync()
        except SignerError as error:
            filling = "while initially filling key cache: while performing initial cache fill"
            raise error.within(filling) from None
        metadata = await client.metadata(_METADATA_TIMEOUT)
    except SignerError as error:
        raise click.ClickException(f"{context}: {error}") from None
    finally:
        await client.close()
    return ExternalSigner(client, keys, metadata.max_token_expiration_seconds)
