"""`serviceaccounts/token` in core when auth is a separate process.

Auth has the logic and the keys. Admission runs here, in core.

The auth service serves TOKEN_REQUESTS_PATH: `prepare` sets defaults and validates, `issue` signs. In between
core's validating admission gets the prepared object, as it would in one process.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson

from tetrapod.generic.client.interface import Client
from tetrapod.generic.http.peers import SECRET_TOKENS_PATH, TOKEN_REQUESTS_PATH
from tetrapod.generic.lifecycle import RETRY_SECONDS, Unavailable
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.rest import Rest
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError, service_unavailable

_DEFAULT_SECONDS: Final = 60 * 60


def default_token_request(obj: Object) -> None:
    """Set the default expiration (upstream: SetDefaults_TokenRequestSpec)."""
    spec = obj.get("spec") or {}
    obj["spec"] = spec
    if spec.get("expirationSeconds") is None:
        spec["expirationSeconds"] = _DEFAULT_SECONDS


def note_credential(ctx: Context, answer: Object) -> Object:
    """Annotate the audit event with the id of the issued credential (upstream: CredentialIDForJTI).

    Returns `answer`.
    """
    payload = answer["status"]["token"].split(".")[1]
    claims = orjson.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    if jti := claims.get("jti"):
        ctx.annotations.setdefault("authentication.kubernetes.io/issued-credential-id", f"JTI={jti}")
    return answer


class RemoteTokenRequestRest(Rest):
    """The subresource. `client` calls the auth service as a member of SERVICES_GROUP."""

    keeps_system_metadata = True  # a request may name the account's uid as a precondition

    def __init__(self, client: Client) -> None:
        self._client = client

    def default(self, obj: Object) -> None:
        """Set the default expiration before the object is validated."""
        default_token_request(obj)

    async def create(self, ctx: Context, name: str, obj: Object, validate: Any, options: Object) -> Object:
        """Create a token: auth prepares the request, `validate` (admission) runs, auth issues the token.

        Raises:
            StatusError: the request was rejected, or 503 if auth is unavailable or its response is malformed.
        """
        obj.update((await self._ask("prepare", ctx, name, obj))["object"])
        if validate is not None:
            await validate(obj)
        answer = await self._ask("issue", ctx, name, obj)
        ctx.warnings.extend(answer["warnings"])
        return note_credential(ctx, answer["object"])

    async def _ask(self, step: str, ctx: Context, name: str, obj: Object) -> Any:
        question = orjson.dumps({"step": step, "namespace": ctx.namespace, "name": name, "object": obj})
        try:
            code, body = await self._client.raw(
                "POST", TOKEN_REQUESTS_PATH, question, {"content-type": "application/json"}
            )
        except Unavailable as error:
            raise service_unavailable(f"the auth service cannot be reached: {error}", RETRY_SECONDS) from error
        try:
            answer = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise service_unavailable(f"the auth service answered {code}") from error
        if code != 200:
            raise StatusError(code, answer.get("reason", ""), answer.get("message", ""), answer.get("details"))
        return answer


def remote_secret_signer(client: Client) -> Callable[[str, str, str], Awaitable[str]]:
    """Return a function (namespace, service account, secret) → legacy token, signed by auth. It raises StatusError."""

    async def sign(namespace: str, account: str, secret: str) -> str:
        question = orjson.dumps({"namespace": namespace, "account": account, "secret": secret})
        code, body = await client.raw("POST", SECRET_TOKENS_PATH, question, {"content-type": "application/json"})
        if code != 200:
            raise StatusError(code, "", f"the auth service signed no token: {body.decode('utf-8', 'replace')[:200]}")
        token: str = orjson.loads(body)["token"]
        return token

    return sign
