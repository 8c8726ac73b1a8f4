"""`WebhookAuthorizer`: sends SubjectAccessReviews to a webhook and caches the responses.

A review is only sent if the request matches the webhook's matchConditions.
Upstream: k8s.io/apiserver/plugin/pkg/authorizer/webhook/webhook.go.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

import orjson

from tetrapod.generic.authentication.shared_cache import SharedCache
from tetrapod.generic.authentication.tokencache import ExpiringCache
from tetrapod.generic.authorization.delegating import review_of
from tetrapod.generic.authorization.interface import Attributes, AuthorizationResult, Decision, ResolvedRules
from tetrapod.generic.authorization.metrics import DURATIONS, EVALUATIONS, FAIL_OPEN
from tetrapod.generic.authorization.selector_attributes import parse_large
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.webhook.kubeconfig import Target
from tetrapod.generic.webhook.responses import Expected
from tetrapod.generic.webhook.review_client import TIMEOUT, Backoff, ReviewClient, ReviewFailed, pause
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.types import load
from tetrapod.machinery.user import UserInfo

log = logging.getLogger(__name__)

VERSIONS: Final = ("v1", "v1beta1")
GROUP: Final = "authorization.k8s.io"
_CACHED: Final = 8192
_PURPOSE: Final = "access"
_CACHEABLE: Final = 10_000
"""Total characters of the client-chosen attributes from which on a response is not cached, so that clients cannot fill
the cache.
"""


class Conditions(Protocol):
    """The matchConditions of a webhook. The webhook is called only for requests that they match."""

    async def match(self, spec: Object) -> bool:
        """Return whether all conditions match the spec of a SubjectAccessReview.

        Raises:
            ConditionError: a condition failed with an error, and no condition is false.
        """
        ...


class ConditionError(Exception):
    """The error of a matchCondition that could not be evaluated, while no other condition is false."""


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """The options of one authorization webhook.

    Attributes:
        target: the address and credentials of the webhook.
        name: the name in metrics and cache keys.
        version: the version of SubjectAccessReview, v1 or v1beta1.
        timeout: the limit of one request, in seconds.
        authorized_ttl: how long to cache allowed responses, in seconds.
        unauthorized_ttl: how long to cache all other responses, in seconds.
        deny_on_failure: whether the decision after a failure is DENY instead of NO_OPINION (`failurePolicy: Deny`).
        conditions: the matchConditions; None to call the webhook for every request.
        backoff: the retry policy.
    """

    target: Target
    name: str = "default"
    version: str = "v1"
    timeout: float = TIMEOUT
    authorized_ttl: float = 300.0
    unauthorized_ttl: float = 30.0
    deny_on_failure: bool = False
    conditions: Conditions | None = None
    backoff: Backoff = field(default_factory=Backoff)


class WebhookAuthorizer:
    """The authorizer of one webhook. A failure is returned as DENY or NO_OPINION with the error, as the options say.

    Args:
        options: the webhook and its options.
        pool: the connections to webhooks.
        shared: the cache of responses that replicas share; None for none.

    Raises:
        ValueError: `options.version` is not in `VERSIONS`.
    """

    def __init__(self, options: WebhookOptions, pool: BackendPool, shared: SharedCache | None = None) -> None:
        if options.version not in VERSIONS:
            listed = ", ".join(map(go_quote, VERSIONS))
            raise ValueError(
                f"unsupported webhook authorizer version {go_quote(options.version)}, supported versions are {listed}"
            )
        self._options = options
        expected = Expected(
            f"{GROUP}/{options.version}",
            "SubjectAccessReview",
            partial(load, "io.k8s.api.authorization.v1.SubjectAccessReview"),
        )
        self._client = ReviewClient(options.target, pool, expected, timeout=options.timeout)
        self._on_failure = Decision.DENY if options.deny_on_failure else Decision.NO_OPINION
        self._allowed = ExpiringCache[bytes, Object](options.authorized_ttl, limit=_CACHED)
        self._others = ExpiringCache[bytes, Object](options.unauthorized_ttl, limit=_CACHED)
        self._shared = shared
        self._source = orjson.dumps([options.name, options.target.url, options.version])

    async def authorize(self, attributes: Attributes) -> AuthorizationResult:
        await parse_large(attributes.field_requirements, attributes.label_requirements)
        spec: Object = review_of(attributes)["spec"]
        if (conditions := self._options.conditions) is not None:
            try:
                if not await conditions.match(spec):
                    return AuthorizationResult(Decision.NO_OPINION)
            except ConditionError as error:
                return AuthorizationResult(self._on_failure, "", str(error))
        key = orjson.dumps(spec, option=orjson.OPT_SORT_KEYS)
        status = await self._cached_response(key)
        if status is None:
            try:
                status = await self._ask(spec)
            except ReviewFailed as error:
                log.error("Failed to make webhook authorizer request: %s", error)
                if self._on_failure is Decision.NO_OPINION:
                    FAIL_OPEN.add((self._options.name, error.result))
                return AuthorizationResult(self._on_failure, "", str(error))
            if _controlled(attributes) < _CACHEABLE:
                self._cache(status).put(key, status)
                if self._shared is not None:
                    await self._shared.put(_PURPOSE, self._source + key, status, self._cache(status).seconds)
        return _answer_of(status)

    def _cache(self, status: Object) -> ExpiringCache[bytes, Object]:
        return self._allowed if status.get("allowed") else self._others

    async def _cached_response(self, key: bytes) -> Object | None:
        """Return the cached status of a SubjectAccessReview, or None if no cache has it.

        This replica's cache is read first, then the shared one. An entry that another replica stored is valid at
        most for the TTLs of this replica's options.

        Args:
            key: the encoded spec of the review.
        """
        for cache in (self._allowed, self._others):
            if (status := cache.get(key)) is not None:
                return status
        if self._shared is None or (shared_response := await self._shared.get(_PURPOSE, self._source + key)) is None:
            return None
        cache = self._cache(shared_response.value)
        cache.put(key, shared_response.value, shared_response.seconds)
        return cache.get(key)

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules:
        return ResolvedRules([], [], True, "webhook authorizer does not support user rule resolution")

    async def _ask(self, spec: Object) -> Object:
        """Send a SubjectAccessReview with this spec, with retries, and return its status ({} if it has none).

        Raises:
            ReviewFailed: the last try failed.
        """
        version = self._options.version
        if version == "v1beta1":  # v1beta1 names the groups "group"
            spec = {("group" if name == "groups" else name): value for name, value in spec.items()}
        review = {"kind": "SubjectAccessReview", "apiVersion": f"{GROUP}/{version}", "metadata": {}, "spec": spec}
        review["status"] = {"allowed": False}
        tried = 0
        while True:
            tried += 1
            try:
                status: Object = (await self._once(review)).get("status") or {}
                return status
            except ReviewFailed as error:
                if not error.again or tried >= self._options.backoff.tries:
                    raise
            await pause(self._options.backoff, tried)

    async def _once(self, review: Object) -> Object:
        start, result = time.perf_counter(), "success"
        try:
            return await self._client.once(review)
        except ReviewFailed as error:
            result = error.result
            raise
        except asyncio.CancelledError:
            result = "canceled"
            raise
        finally:
            labels = (self._options.name, result)
            EVALUATIONS.add(labels)
            DURATIONS.observe(labels, time.perf_counter() - start)


def _answer_of(status: Object) -> AuthorizationResult:
    reason = status.get("reason") or ""
    if status.get("denied"):
        both = "webhook subject access review returned both allow and deny response" if status.get("allowed") else ""
        return AuthorizationResult(Decision.DENY, reason, both)
    return AuthorizationResult(Decision.ALLOW if status.get("allowed") else Decision.NO_OPINION, reason)


def _controlled(attributes: Attributes) -> int:
    texts = (
        attributes.namespace,
        attributes.verb,
        attributes.group,
        attributes.version,
        attributes.resource,
        attributes.subresource,
        attributes.name,
        attributes.path,
    )
    return sum(map(len, texts))
