"""Bearer tokens checked by the auth service, by TokenReview (for servers that hold no keys).

Upstream: k8s.io/apiserver/plugin/pkg/authenticator/token/webhook. Wrap it in `CachedTokenAuthenticator`.
"""

from __future__ import annotations

import logging
from typing import Final

import orjson

from tetrapod.generic.authentication.interface import Authenticated, InvalidToken
from tetrapod.generic.client.interface import Client
from tetrapod.generic.unavailable import RETRY_SECONDS, Unavailable
from tetrapod.generic.user import UserInfo
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError, service_unavailable

log = logging.getLogger(__name__)

_NOTES: Final = "tetrapod.dev/notes"
TOKEN_REVIEWS: Final = GroupVersionResource("authentication.k8s.io", "v1", "tokenreviews")


class TokenReviewer:
    """Raises InvalidToken with what the review says, and, as upstream, where it is refused.

    Where nobody can be asked, StatusError 503: upstream's kube-apiserver checks tokens itself, and its clients give up at a 401
    (or forget their credentials) that they would not have got.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        spec: Object = {"token": token}
        if audiences:
            spec["audiences"] = list(audiences)
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        try:
            answer = await self._client.create(TOKEN_REVIEWS, "", review)
        except (StatusError, Unavailable, OSError) as error:
            log.warning("a token could not be reviewed: %s", error)
            if not isinstance(error, StatusError) or error.code >= 500:
                raise service_unavailable(f"token review failed: {error}", RETRY_SECONDS) from error
            raise InvalidToken(f"token review failed: {error}") from error
        status = answer.get("status") or {}
        if not status.get("authenticated"):
            if status.get("error"):
                raise InvalidToken(status["error"])
            return None
        accepted = tuple(status.get("audiences") or ())
        if audiences and not set(audiences) & set(accepted):
            raise InvalidToken("the review answered for other audiences than it was asked")
        return Authenticated(user_from_wire(status.get("user") or {}), accepted, *notes_from_wire(answer))


def notes_to_wire(found: Authenticated) -> dict[str, str]:
    """Annotations of a TokenReview that say what there is to note about the credential; none where there is nothing."""
    if not found.annotations and not found.warnings:
        return {}
    return {_NOTES: orjson.dumps({"annotations": found.annotations, "warnings": found.warnings}).decode()}


def notes_from_wire(review: Object) -> tuple[dict[str, str], tuple[str, ...]]:
    """Annotations of the audit event, and warnings."""
    text = ((review.get("metadata") or {}).get("annotations") or {}).get(_NOTES)
    notes = orjson.loads(text) if text else {}
    return notes.get("annotations") or {}, tuple(notes.get("warnings") or ())


def user_from_wire(info: Object) -> UserInfo:
    """authentication.k8s.io/v1 UserInfo, as reviews and admission carry it."""
    extra = {key: tuple(texts) for key, texts in (info.get("extra") or {}).items()}
    return UserInfo(info.get("username", ""), info.get("uid", ""), tuple(info.get("groups") or ()), extra)


def user_to_wire(user: UserInfo) -> Object:
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
