"""The internal API of the auth service, for the peer services aggregator, core and extensions only.

It serves rule sets (all RBAC rules that apply to a user), token requests and tokens for Secrets. The paths and the
names of the callers are in generic/http/peers.py. `InternalAuthorizer` is the first authorizer of auth: on these paths
it allows members of SERVICES_GROUP and denies all other users, system:masters included. Tokens are issued to core
alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson

from tetrapod.auth.authorizers.chain import AuthorizerChain
from tetrapod.auth.rbac.index import RbacIndex
from tetrapod.auth.tokens.request import TokenRequests
from tetrapod.generic.authentication.delegating import TOKEN_REVIEWS
from tetrapod.generic.authorization.delegating import SUBJECT_ACCESS_REVIEWS
from tetrapod.generic.authorization.interface import Attributes, AuthorizationResult, Decision
from tetrapod.generic.authorization.rules import RuleSet
from tetrapod.generic.http.headers import JSON_TYPE
from tetrapod.generic.http.peers import CORE, RULES_PATH, SECRET_TOKENS_PATH, TOKEN_REQUESTS_PATH
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.generic.registry.context import Context
from tetrapod.machinery.status import bad_request
from tetrapod.machinery.user import SERVICES_GROUP, UserInfo

_PREFIX: Final = "/internal/tetrapod/"
_SIGNING: Final = frozenset({TOKEN_REQUESTS_PATH, SECRET_TOKENS_PATH})
_REVIEWS: Final = frozenset((gvr.group, gvr.resource) for gvr in (TOKEN_REVIEWS, SUBJECT_ACCESS_REVIEWS))
_ALLOW: Final = AuthorizationResult(Decision.ALLOW)
_DENY: Final = AuthorizationResult(Decision.DENY)
_NO_OPINION: Final = AuthorizationResult(Decision.NO_OPINION)
_VALIDITY: Final = 5.0
_BODY_LIMIT: Final = 3 * 1024 * 1024


class InternalAuthorizer:
    """The authorizer of the internal paths, and of the reviews that aggregator, core and extensions create.

    It allows these services both, except that only core may use the paths that sign tokens. It denies the internal
    paths to all other users, and has no opinion on other requests.
    """

    async def authorize(self, attributes: Attributes) -> AuthorizationResult:
        """Allow the peer services to use the internal paths, and to create TokenReviews and SubjectAccessReviews.

        Peer services are the users in SERVICES_GROUP. On internal paths all other users are denied, and the paths that
        sign tokens are reserved for core. The decision on everything else is NO_OPINION.
        """
        service = SERVICES_GROUP in attributes.user.groups
        if attributes.resource_request:
            reviews = service and attributes.verb == "create" and (attributes.group, attributes.resource) in _REVIEWS
            return _ALLOW if reviews else _NO_OPINION
        if not attributes.path.startswith(_PREFIX):
            return _NO_OPINION
        allowed = service and (attributes.path not in _SIGNING or attributes.user.name == CORE)
        return _ALLOW if allowed else _DENY


def internal_routes(
    index: RbacIndex,
    chain: AuthorizerChain,
    requests: TokenRequests | None,
    sign_secret: Callable[[str, str, str], Awaitable[str]],
) -> dict[str, Handler]:
    """Return the handlers of the internal API by path.

    Args:
        index: has the rule sets of users.
        chain: the configured authorizers, which decide whether RBAC rules alone may allow a request.
        requests: the steps of token requests; None if no tokens are signed. The paths that issue tokens are then left
            out.
        sign_secret: returns the token of a Secret, given a namespace, a service account and the Secret's name.
    """
    routes = {RULES_PATH: _json(_rules(index, chain))}
    if requests is not None:
        routes[TOKEN_REQUESTS_PATH] = _json(_token_requests(requests))
        routes[SECRET_TOKENS_PATH] = _json(_secret_tokens(sign_secret))
    return routes


_Respond = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


def _json(respond: _Respond) -> Handler:
    """Return a handler of POST requests that calls `respond` with the decoded JSON body, and encodes its result.

    The handler raises StatusError (400) for malformed requests and other methods.

    Args:
        respond: gets the decoded body, a JSON object, and returns the object to encode. It may raise KeyError,
            TypeError or AttributeError for a malformed body.
    """

    async def handler(request: Request) -> Response:
        if request.method != "POST":
            raise bad_request("only POST is understood here")
        try:
            body = await respond(orjson.loads(await request.body.read(_BODY_LIMIT)))
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise bad_request(f"not a question that can be understood: {error}") from error
        return Response(200, [JSON_TYPE], orjson.dumps(body))

    return handler


def _rules(index: RbacIndex, chain: AuthorizerChain) -> _Respond:
    """Return the function that responds with the whole rule set of a user.

    Its request has the members `user`, `groups` and `revisions`. The index first catches up with these revisions, which
    the caller has seen. The response has:

    - the rule set. It is empty where RBAC rules alone do not decide (a webhook comes before RBAC, or RBAC is disabled);
      the
      caller then sends a SubjectAccessReview for every request.
    - `revisions`: those of the RBAC objects that the rule set was computed from.
    - `seconds`: how long the caller may use the rule set; only where the chain of authorizers may change.

    At the first start the function waits for the bootstrap policy: the services start at the same time, and a request
    that the policy allows must not be denied because the policy is not stored yet.

    Args:
        index: computes the rule set.
        chain: the configured authorizers.
    """

    async def respond(message: dict[str, Any]) -> dict[str, Any]:
        await index.has_policy.wait()
        await index.reach(message.get("revisions") or {})
        user = UserInfo(message["user"], groups=tuple(message.get("groups") or ()))
        rules = index.rules_of(user) if chain.decided_by_rules else RuleSet()
        validity = {"seconds": _VALIDITY} if chain.may_change else {}
        return {"revisions": index.revisions(), **validity, **rules.to_wire()}

    return respond


def _token_requests(requests: TokenRequests) -> _Respond:
    """Return the function that runs one step of a TokenRequest of core; see `TokenRequests`.

    Its request is {step, namespace, name, object}, with the step "prepare" or "issue", the service account, and the
    TokenRequest. Its response is {object, warnings, annotations}. Core runs validating admission between the steps.
    """

    async def respond(message: dict[str, Any]) -> dict[str, Any]:
        ctx = Context(namespace=message["namespace"], version="v1", subresource="token")
        name, obj = message["name"], message["object"]
        if message["step"] == "prepare":
            await requests.prepare(ctx, name, obj)
        else:
            obj = await requests.issue(ctx, name, obj)
        return {"object": obj, "warnings": ctx.warnings, "annotations": ctx.annotations}

    return respond


def _secret_tokens(sign: Callable[[str, str, str], Awaitable[str]]) -> _Respond:
    """Return the function that issues a legacy token for core's token controller.

    Its request is {namespace, account, secret}, and its response is {token}.

    Args:
        sign: returns the token of a Secret, given a namespace, a service account and the Secret's name.
    """

    async def respond(message: dict[str, Any]) -> dict[str, Any]:
        return {"token": await sign(message["namespace"], message["account"], message["secret"])}

    return respond
