"""`serviceaccounts/token` in core when auth is a separate process.

The auth service has the signing keys and the rules of TokenRequests; admission runs here, in core. So core sends two
requests to TOKEN_REQUESTS_PATH of auth: `prepare` sets defaults and validates, and `issue` signs. Between them, core
runs validating admission on the prepared object, as it would in one process.
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
    """Set `spec.expirationSeconds` of a TokenRequest to an hour, in place, if it is missing.

    Upstream: SetDefaults_TokenRequestSpec
    """
    spec = obj.get("spec") or {}
    obj["spec"] = spec
    if spec.get("expirationSeconds") is None:
        spec["expirationSeconds"] = _DEFAULT_SECONDS


def note_credential(ctx: Context, answer: Object) -> Object:
    """Add the id of the token in `answer`, a TokenRequest, to the audit annotations, and return `answer`.

    Upstream: CredentialIDForJTI
    """
    payload = answer["status"]["token"].split(".")[1]
    claims = orjson.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    if jti := claims.get("jti"):
        ctx.annotations.setdefault("authentication.kubernetes.io/issued-credential-id", f"JTI={jti}")
    return answer


class RemoteTokenRequestRest(Rest):
    """The handler of `serviceaccounts/token` in core, which calls the auth service.

    Args:
        client: the client of the auth service, as a member of SERVICES_GROUP.
    """

    keeps_system_metadata = True  # a request may name the account's uid as a precondition

    def __init__(self, client: Client) -> None:
        self._client = client

    def default(self, obj: Object) -> None:
        """Set the default expiration in place, before the object is validated."""
        default_token_request(obj)

    async def create(self, ctx: Context, name: str, obj: Object, validate: Any, options: Object) -> Object:
        """Let auth prepare the TokenRequest, call `validate`, let auth issue the token, and return it.

        Args:
            ctx: the request, which gets warnings and an audit annotation.
            name: the service account.
            obj: the TokenRequest, which is changed.
            validate: runs validating admission; None skips it.
            options: not used.

        Raises:
            StatusError: the request was rejected, or 503 if auth is unavailable or its response is malformed.
        """
        obj.update(await self._ask("prepare", ctx, name, obj))
        if validate is not None:
            await validate(obj)
        return note_credential(ctx, await self._ask("issue", ctx, name, obj))

    async def _ask(self, step: str, ctx: Context, name: str, obj: Object) -> Object:
        """Ask the auth service for one step of a token request, and return the TokenRequest in its response.

        Warnings and audit annotations of the response are added to `ctx`.

        Args:
            step: `prepare` (default and validate the TokenRequest) or `issue` (sign the token).
            ctx: the request.
            name: the service account.
            obj: the TokenRequest that is sent.

        Raises:
            StatusError: auth rejected the request, or 503 if auth is unavailable or its response is malformed.
        """
        request = orjson.dumps({"step": step, "namespace": ctx.namespace, "name": name, "object": obj})
        try:
            code, body = await self._client.raw(
                "POST", TOKEN_REQUESTS_PATH, request, {"content-type": "application/json"}
            )
        except Unavailable as error:
            raise service_unavailable(f"the auth service cannot be reached: {error}", RETRY_SECONDS) from error
        try:
            answer = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise service_unavailable(f"the auth service answered {code}", RETRY_SECONDS) from error
        if not isinstance(answer, dict) or (code == 200 and not isinstance(answer.get("object"), dict)):
            raise service_unavailable(f"the auth service answered {code} with another object", RETRY_SECONDS)
        if code != 200:
            raise StatusError(code, answer.get("reason", ""), answer.get("message", ""), answer.get("details"))
        ctx.warnings.extend(answer.get("warnings") or ())
        ctx.annotations.update(answer.get("annotations") or {})
        return answer["object"]  # type: ignore[no-any-return]


def remote_secret_signer(client: Client) -> Callable[[str, str, str], Awaitable[str]]:
    """Return a function that lets auth sign a legacy token, and returns the token.

    Its arguments are the namespace, the service account and the Secret. It raises StatusError if auth rejects the
    request, and Unavailable if auth cannot be reached.
    """

    async def sign(namespace: str, account: str, secret: str) -> str:
        request = orjson.dumps({"namespace": namespace, "account": account, "secret": secret})
        code, body = await client.raw("POST", SECRET_TOKENS_PATH, request, {"content-type": "application/json"})
        if code != 200:
            raise StatusError(code, "", f"the auth service signed no token: {body.decode('utf-8', 'replace')[:200]}")
        token: str = orjson.loads(body)["token"]
        return token

    return sign
