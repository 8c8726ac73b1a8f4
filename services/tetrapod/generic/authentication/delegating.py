"""The authenticator that sends bearer tokens to the auth service as TokenReviews, for servers without keys.

Upstream: k8s.io/apiserver/plugin/pkg/authenticator/token/webhook. Wrap it in `CachedTokenAuthenticator`.
"""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Final

import orjson

from tetrapod.generic.authentication.interface import Authenticated, InvalidToken
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.review_metrics import ReviewMetrics
from tetrapod.generic.lifecycle import RETRY_SECONDS, Unavailable
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError, service_unavailable
from tetrapod.machinery.user import UserInfo

log = logging.getLogger(__name__)

_ANNOTATIONS: Final = "tetrapod.dev/notes"
TOKEN_REVIEWS: Final = GroupVersionResource("authentication.k8s.io", "v1", "tokenreviews")
_METRICS: Final = ReviewMetrics("authn")


class TokenReviewer:
    """The token authenticator that creates a TokenReview for each token. It does not cache results.

    It returns None if the token is not authenticated and the review has no error.

    Upstream's kube-apiserver checks tokens itself, so a client never gets a 401 because a service is unavailable. A 401
    would make clients give up or discard their credentials; this authenticator therefore raises a 503 instead.

    Args:
        client: the client of the auth service.

    Raises:
        InvalidToken: the review has an error, accepts the token for other audiences only, or is itself rejected (a
            status below 500, except 401).
        StatusError: 503, the auth service is unavailable or does not accept the credentials of this server (401), such
            as an expired client certificate, or the audit annotations in the review are malformed.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        spec: Object = {"token": token}
        if audiences:
            spec["audiences"] = list(audiences)
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        try:
            reviewed = await _METRICS.create(self._client, TOKEN_REVIEWS, review)
        except (StatusError, Unavailable, OSError) as error:
            log.warning("a token could not be reviewed: %s", error)
            if not isinstance(error, StatusError) or error.code >= 500 or error.code == HTTPStatus.UNAUTHORIZED:
                raise service_unavailable(f"token review failed: {error}", RETRY_SECONDS) from error
            raise InvalidToken(f"token review failed: {error}") from error
        status = reviewed.get("status") or {}
        if not status.get("authenticated"):
            if status.get("error"):
                raise InvalidToken(status["error"])
            return None
        accepted = tuple(status.get("audiences") or ())
        if audiences and not set(audiences) & set(accepted):
            raise InvalidToken("the review answered for other audiences than it was asked")
        try:
            annotations, warnings = annotations_from_wire(reviewed)
        except ValueError as error:
            raise service_unavailable(f"token review failed: {error}", RETRY_SECONDS) from error
        return Authenticated(user_from_wire(status.get("user") or {}), accepted, annotations, warnings)


def annotations_to_wire(authenticated: Authenticated) -> dict[str, str]:
    """Return the TokenReview annotations that carry the audit annotations and warnings about a credential.

    Returns:
        One annotation with both as JSON; {} if the credential has neither.
    """
    if not authenticated.annotations and not authenticated.warnings:
        return {}
    return {
        _ANNOTATIONS: orjson.dumps(
            {"annotations": authenticated.annotations, "warnings": authenticated.warnings}
        ).decode()
    }


def annotations_from_wire(review: Object) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the audit annotations and warnings that `annotations_to_wire` put into a TokenReview.

    Both are empty if the review carries none.

    Raises:
        ValueError: the annotation of the review is not a JSON object.
    """
    text = ((review.get("metadata") or {}).get("annotations") or {}).get(_ANNOTATIONS)
    content = orjson.loads(text) if text else {}
    if not isinstance(content, dict):
        raise ValueError(f"the annotation {_ANNOTATIONS} is not a JSON object")
    return content.get("annotations") or {}, tuple(content.get("warnings") or ())


def user_from_wire(info: Object) -> UserInfo:
    """Convert an authentication.k8s.io/v1 UserInfo to a `UserInfo`. Missing fields become empty."""
    extra = {key: tuple(texts) for key, texts in (info.get("extra") or {}).items()}
    return UserInfo(info.get("username", ""), info.get("uid", ""), tuple(info.get("groups") or ()), extra)


def user_to_wire(user: UserInfo) -> Object:
    """Convert a user to an authentication.k8s.io/v1 UserInfo, without empty fields and with the extra keys sorted."""
    info: Object = {}
    if user.name:
        info["username"] = user.name
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(user.extra[key]) for key in sorted(user.extra)}
    return info
