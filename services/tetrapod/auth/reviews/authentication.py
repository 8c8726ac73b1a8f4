"""TokenReview and SelfSubjectReview.

Upstream: pkg/registry/authentication/{tokenreview,selfsubjectreview}/storage.go.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.generic.authentication.bearer import INVALID_BEARER_TOKEN, bearer_token
from tetrapod.generic.authentication.delegating import annotations_to_wire, user_to_wire
from tetrapod.generic.authentication.interface import Authenticated, InvalidToken, TokenAuthenticator
from tetrapod.generic.authentication.union import with_authenticated_group
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.rest import Rest
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import bad_request, internal_error
from tetrapod.machinery.timestamps import now_rfc3339
from tetrapod.machinery.user import ANONYMOUS, SERVICES_GROUP

GROUP: Final = "authentication.k8s.io"


class TokenReviews(Rest):
    """The resource `tokenreviews`.

    The token is parsed like the header `Authorization: Bearer <token>`, so white space in it has the same effect. As
    upstream, fields of a submitted status that are not overwritten are returned. Audit annotations and warnings about
    the credential are returned, in an annotation, only to peer services (users in SERVICES_GROUP), because they are for
    the request that the token came with.

    Args:
        tokens: authenticates tokens.
        audiences: the audiences of this server, for reviews that name none.
        anonymous: whether a review with an empty bearer token succeeds as the anonymous user.
    """

    def __init__(self, tokens: TokenAuthenticator, audiences: tuple[str, ...], *, anonymous: bool = True) -> None:
        self._tokens, self._audiences, self._anonymous = tokens, audiences, anonymous

    async def create(self, ctx: Context, name: str, obj: Object, validate: Any, options: Object) -> Object:
        spec: Object = obj.get("spec") or {}
        if not spec.get("token"):
            raise bad_request("token is required for TokenReview in authentication")
        if validate is not None:
            await validate(obj)
        audiences = tuple(spec.get("audiences") or self._audiences)
        status: Object = {key: value for key, value in (obj.get("status") or {}).items() if key != "authenticated"}
        status["user"] = status.get("user") or {}
        try:
            result = await self._authenticate(spec["token"], audiences)
        except InvalidToken as error:
            status["error"] = str(error)
            return {**obj, "status": status}
        if result is not None:
            if audiences and not set(audiences) & set(result.audiences):
                raise internal_error("unable to validate audience")
            if SERVICES_GROUP in ctx.user.groups and (credential_annotations := annotations_to_wire(result)):
                obj = {**obj, "metadata": {**(obj.get("metadata") or {}), "annotations": credential_annotations}}
            user = user_to_wire(with_authenticated_group(result.user))
            status |= {"authenticated": True, "user": user, "audiences": list(result.audiences)}
        return {**obj, "status": status}

    async def _authenticate(self, sent: str, audiences: tuple[str, ...]) -> Authenticated | None:
        token, _ = bearer_token(f"Bearer {sent}")
        if not token:
            return Authenticated(ANONYMOUS, audiences) if self._anonymous else None
        try:
            result = await self._tokens.authenticate_token(token, audiences)
        except InvalidToken as error:
            raise InvalidToken(f"[{INVALID_BEARER_TOKEN}, {error}]") from error
        if result is None:
            raise InvalidToken(INVALID_BEARER_TOKEN)
        return result


class SelfSubjectReviews(Rest):
    """The resource `selfsubjectreviews`, which returns the requesting user and nothing of the submitted object."""

    async def create(self, ctx: Context, name: str, obj: Object, validate: Any, options: Object) -> Object:
        if validate is not None:
            await validate(obj)
        return {
            "kind": "SelfSubjectReview",
            "apiVersion": f"{GROUP}/v1",
            "metadata": {"creationTimestamp": now_rfc3339()},
            "status": {"userInfo": user_to_wire(ctx.user)},
        }
