"""`JwtAuthenticators`: the authenticators of the current AuthenticationConfiguration.

They are replaced when the file changes, but only after all issuers of the new ones have answered.

Upstream: newJWTAuthenticator and authenticationConfigUpdater of pkg/kubeapiserver/authenticator/config.go, and the
reload of pkg/kubeapiserver/options/authentication.go.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tetrapod.auth.oidc import metrics
from tetrapod.auth.oidc.authenticator import JwtAuthenticator
from tetrapod.auth.oidc.configuration import JwtOptions, load_configuration
from tetrapod.auth.oidc.validation import validate
from tetrapod.generic.authentication.interface import Authenticated, TokenAuthenticator
from tetrapod.generic.authentication.tokencache import CachedTokenAuthenticator
from tetrapod.generic.configuration.metrics import ReloadMetrics
from tetrapod.generic.configuration.watching import watch
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.machinery import field
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.field import aggregate
from tetrapod.machinery.gvk import Object

log = logging.getLogger(__name__)

RELOADS: Final = ReloadMetrics("authentication")
_DISCOVERY_TIMEOUT: Final = 60.0
"""Seconds that the issuers of a changed file have to answer (upstream: UpdateAuthenticationConfigTimeout)."""


class JwtAuthenticators:
    """A `TokenAuthenticator` for all issuers of the configuration.

    Args:
        options: the configuration; its file, if it has one, is watched and reloaded.
        pool: sends requests to the issuers.
        egress: the pools to use instead of `pool`, by the value of an issuer's `egressSelectorType`; None without an
            egress
            selector.
        clock: returns seconds since the epoch.

    Raises:
        ValueError: from the constructor: the first configuration is invalid.
    """

    def __init__(
        self,
        options: JwtOptions,
        pool: BackendPool,
        *,
        egress: Mapping[str, BackendPool] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._options, self._pool, self._egress, self._clock = options, pool, egress, clock
        self._data = options.data
        self._tasks: list[asyncio.Task[None]] = []
        self._use(self._make(options.config))

    def _make(self, config: Object) -> list[JwtAuthenticator]:
        options = self._options
        return [
            JwtAuthenticator(
                one,
                self._pool,
                egress=self._egress,
                algorithms=options.algorithms,
                disallowed=options.disallowed,
                clock=self._clock,
            )
            for one in config.get("jwt") or []
        ]

    def _use(self, made: list[JwtAuthenticator]) -> None:
        self._made = made
        self._cached: list[TokenAuthenticator] = [CachedTokenAuthenticator(one) for one in made]

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        """Return the user of a token, or None if no configured issuer has issued it.

        The returned audiences are the requested ones that belong to this API server. The audiences in the token are
        checked against the issuer's configuration instead.

        Args:
            audiences: the requested audiences; () for all of this API server. If none of them is its own, the result is
                None.

        Raises:
            InvalidToken: the token's issuer is configured, but the token is not valid. No other issuer is tried.
        """
        accepted = tuple(a for a in audiences or self._options.audiences if a in self._options.audiences)
        if not accepted:
            return None
        for authenticator in self._cached:
            result = await authenticator.authenticate_token(token, ())
            if result is not None:
                return Authenticated(result.user, accepted)
        return None

    def start(self, lifecycle: Lifecycle) -> None:
        """Start fetching the issuers' discovery documents and, if there is a configuration file, watching it."""
        self._start(self._made)
        if self._options.file:
            RELOADS.applied(self._data)
            lifecycle.background("authentication-config", watch(self._options.file, self.reload))

    def _start(self, made: list[JwtAuthenticator]) -> None:
        self._tasks = [asyncio.create_task(one.run(), name=f"jwt-authenticator/{one.issuer}") for one in made]

    async def reload(self) -> None:
        """Read the configuration file, and replace the authenticators if it has changed and is valid.

        The present authenticators are kept if the file is unchanged or invalid, or if a new issuer's discovery document
        cannot be fetched within 60 seconds. Failures are logged and counted.
        """
        try:
            data = await asyncio.to_thread(_read, self._options.file)
        except (OSError, UnicodeDecodeError) as error:
            log.error("failed to read authentication config file: %s", error)
            RELOADS.failed()
            return
        if data == self._data:
            return
        try:
            made = self._make(await asyncio.to_thread(self._checked, data))
        except ValueError as error:
            log.error("failed to validate authentication config: %s", error)
            RELOADS.failed()
            self._data = data  # the same content cannot become valid, so it is not tried again
            return
        old, old_tasks = self._made, self._tasks
        self._start(made)
        discovery_error = await _discovery_errors(made)
        if discovery_error:
            log.error("failed to update authentication config: %s", discovery_error)
            RELOADS.failed()
            new_tasks, self._tasks = self._tasks, old_tasks
            await _cancel(new_tasks)
            return
        self._use(made)
        self._data = data
        await _cancel(old_tasks)
        for issuer in {one.issuer for one in old} - {one.issuer for one in made}:
            metrics.forget(issuer)
        log.info("reloaded authentication config")
        RELOADS.succeeded(data)

    def _checked(self, data: str) -> Object:
        """Return the configuration in a changed file.

        Raises:
            ValueError: it is malformed or invalid.
        """
        config = load_configuration(data.encode())
        errors = validate(config, self._options.disallowed)
        if config.get("anonymous") != self._options.config.get("anonymous"):
            errors.append(field.forbidden("anonymous", "changed from initial configuration file"))
        if errors:
            raise ValueError(aggregate(errors))
        return config

    async def close(self) -> None:
        await _cancel(self._tasks)


def _read(path: str) -> str:
    return Path(path).read_text("utf-8")


async def _discovery_errors(authenticators: list[JwtAuthenticator]) -> str:
    """Wait until all authenticators have fetched their discovery documents, at most 60 seconds, and return the errors.

    Returns:
        "" if all have them, the error of the only one that has not, or several errors as "[a, b]".
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DISCOVERY_TIMEOUT):
            for authenticator in authenticators:
                await authenticator.ready.wait()
    return aggregate_errors(text for authenticator in authenticators if (text := authenticator.discovery_error()))


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
