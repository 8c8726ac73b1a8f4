"""The authenticator that sends TokenReviews to a webhook and caches the results.

The webhook is configured with --authentication-token-webhook-config-file.
Upstream: k8s.io/apiserver/plugin/pkg/authenticator/token/webhook/webhook.go.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

from tetrapod.generic.authentication.delegating import user_from_wire
from tetrapod.generic.authentication.interface import Authenticated, InvalidToken, TokenAuthenticator
from tetrapod.generic.authentication.shared_cache import SharedCache
from tetrapod.generic.authentication.sharedtokens import SharedTokens
from tetrapod.generic.authentication.tokencache import CachedTokenAuthenticator
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.webhook.kubeconfig import Target
from tetrapod.generic.webhook.responses import Expected
from tetrapod.generic.webhook.review_client import Backoff, ReviewClient, ReviewFailed, create
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.types import load

log = logging.getLogger(__name__)

VERSIONS: Final = ("v1", "v1beta1")
GROUP: Final = "authentication.k8s.io"


def webhook_authenticator(
    target: Target,
    pool: BackendPool,
    *,
    version: str,
    ttl: float,
    audiences: tuple[str, ...],
    backoff: Backoff | None = None,
    shared: SharedCache | None = None,
) -> TokenAuthenticator:
    """Return the caching token authenticator of one webhook.

    Args:
        target: the webhook.
        pool: the connections to webhooks.
        version: the version of TokenReview, v1 or v1beta1.
        ttl: how long users and rejections without an error are cached, in seconds.
        audiences: the audiences of this API server, used when a caller requests none.
        backoff: the retry policy; None for upstream's.
        shared: the cache of users that replicas share; None for none.

    Raises:
        ValueError: the version is not supported.
    """
    if version not in VERSIONS:
        listed = ", ".join(map(go_quote, VERSIONS))
        raise ValueError(
            f"unsupported authentication webhook version {go_quote(version)}, supported versions are {listed}"
        )
    # Both versions have the same schema.
    expected = Expected(f"{GROUP}/{version}", "TokenReview", partial(load, "io.k8s.api.authentication.v1.TokenReview"))
    authenticator = WebhookTokenAuthenticator(
        ReviewClient(target, pool, expected), version, audiences, backoff or Backoff()
    )
    shared_tokens = SharedTokens(shared, f"{target.url} {version}", ttl) if shared is not None else None
    return CachedTokenAuthenticator(authenticator, ttl, failure_seconds=ttl, shared=shared_tokens)


class WebhookTokenAuthenticator:
    """The token authenticator of one webhook, without a cache.

    It raises InvalidToken if the review fails or has an error.

    The user is accepted for those requested audiences that the webhook returned, in the webhook's order. `audiences`
    are those of this API server: they replace requested audiences that are empty, and a webhook's answer without
    audiences counts as accepting them. The result is None if no audience is left, or if the webhook rejects the token
    without an error.

    Args:
        client: sends the TokenReviews.
        version: their version, v1 or v1beta1.
        audiences: the audiences of this API server.
        backoff: the retry policy.
    """

    def __init__(self, client: ReviewClient, version: str, audiences: tuple[str, ...], backoff: Backoff) -> None:
        self._client, self._version, self._audiences, self._backoff = client, version, audiences, backoff

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        wanted = audiences or self._audiences
        spec: Object = {"token": token, "audiences": list(wanted)}
        review = {
            "kind": "TokenReview",
            "apiVersion": f"{GROUP}/{self._version}",
            "metadata": {},
            "spec": spec,
            "status": {"user": {}},
        }
        try:
            status: Object = (await create(self._client, review, self._backoff)).get("status") or {}
        except ReviewFailed as error:
            log.error("Failed to make webhook authenticator request: %s", error)
            raise InvalidToken(str(error)) from None
        returned_audiences = status.get("audiences") or self._audiences
        accepted = tuple(audience for audience in returned_audiences if audience in wanted)
        if not accepted:
            return None
        if not status.get("authenticated"):
            if status.get("error"):
                raise InvalidToken(status["error"])
            return None
        return Authenticated(user_from_wire(status.get("user") or {}), accepted)
