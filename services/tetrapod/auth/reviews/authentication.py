"""TokenReview and SelfSubjectReview (upstream: pkg/registry/authentication/{tokenreview,selfsubjectreview})."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.generic.among_services.names import SERVICES_GROUP
from tetrapod.generic.authentication.bearer import INVALID_BEARER_TOKEN, bearer_token
from tetrapod.generic.authentication.delegating import notes_to_wire, user_to_wire
from tetrapod.generic.authentication.interface import Authenticated, InvalidToken, TokenAuthenticator
from tetrapod.generic.authentication.union import with_authenticated_group
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.user import ANONYMOUS
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import bad_request, internal_error
from tetrapod.machinery.timestamps import now_rfc3339

GROUP: Final = "authentication.k8s.io"


class TokenReviews(Rest):
    """Asks as if a request had come with `Authorization: Bearer <token>`, quirks of that header included.

    What a sent status says and the answer does not replace stays in it, as upstream's. What there is to note about the token is told,
    in an annotation, to another of the four services only: it is about the request that came with it.
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
            found = await self._authenticate(spec["token"], audiences)
        except InvalidToken as error:
            status["error"] = str(error)
            return {**obj, "status": status}
        if found is not None:
            if audiences and not set(audiences) & set(found.audiences):
                raise internal_error("unable to validate audience")
            if SERVICES_GROUP in ctx.user.groups and (notes := notes_to_wire(found)):
                obj = {**obj, "metadata": {**(obj.get("metadata") or {}), "annotations": notes}}
            user = user_to_wire(with_authenticated_group(found.user))
            status |= {"authenticated": True, "user": user, "audiences": list(found.audiences)}
        return {**obj, "status": status}

    async def _authenticate(self, sent: str, audiences: tuple[str, ...]) -> Authenticated | None:
        token, _ = bearer_token(f"Bearer {sent}")
        if not token:
            return Authenticated(ANONYMOUS, audiences) if self._anonymous else None
        try:
            found = await self._tokens.authenticate_token(token, audiences)
        except InvalidToken as error:
            raise InvalidToken(f"[{INVALID_BEARER_TOKEN}, {error}]") from error
        if found is None:
            raise InvalidToken(INVALID_BEARER_TOKEN)
        return found


class SelfSubjectReviews(Rest):
    """Who am I: the answer holds nothing of the question."""

    async def create(self, ctx: Context, name: str, obj: Object, validate: Any, options: Object) -> Object:
        if validate is not None:
            await validate(obj)
        return {
            "kind": "SelfSubjectReview",
            "apiVersion": f"{GROUP}/v1",
            "metadata": {"creationTimestamp": now_rfc3339()},
            "status": {"userInfo": user_to_wire(ctx.user)},
        }
