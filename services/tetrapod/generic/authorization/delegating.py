"""Authorization of requests by the auth service, from other processes.

The rule set of a user is fetched once and evaluated locally; any event on an RBAC key in storage drops all rule sets. A
request that the rules do not allow is sent to the auth service as SubjectAccessReview, because other authorizers may
allow it and because the review returns the reason. A server that shares no storage with auth (an external one) uses
SubjectAccessReviews only, with upstream's short cache.
Upstream: k8s.io/apiserver/pkg/authorization/authorizerfactory/delegating.go; plugin/pkg/authorizer/webhook
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from typing import Any, Final

import orjson

from tetrapod.generic.authentication.tokencache import ExpiringCache
from tetrapod.generic.authorization.interface import Attributes, AuthorizationResult, Decision
from tetrapod.generic.authorization.list_watch import StorageReflector
from tetrapod.generic.authorization.rbac_storage import RBAC_STORAGES
from tetrapod.generic.authorization.rules import RuleSet
from tetrapod.generic.authorization.selector_attributes import parse_large
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.review_metrics import ReviewMetrics
from tetrapod.generic.http.peers import RULES_PATH
from tetrapod.generic.lifecycle import RETRY_SECONDS, Unavailable
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.generic.storage.watch import WatchEvent
from tetrapod.machinery.boundedcache import BoundedCache, weigh
from tetrapod.machinery.failure import result_of
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError, service_unavailable
from tetrapod.machinery.user import SYSTEM_MASTERS, UserInfo

SUBJECT_ACCESS_REVIEWS: Final = GroupVersionResource("authorization.k8s.io", "v1", "subjectaccessreviews")
_METRICS: Final = ReviewMetrics("authz")
_ALLOW: Final = AuthorizationResult(Decision.ALLOW)
_PARSED: Final = 5
"""Estimated bytes of a rule set for each byte of its JSON."""

UserKey = tuple[str, tuple[str, ...]]


class RuleSetCache:
    """A cache of the RBAC rules of users, by name and groups, fetched from the auth service.

    While `run` watches the RBAC objects in storage, every change of one drops all rule sets. Without it, nothing is
    cached.

    Args:
        client: the client of the auth service.
        storage: provides the storages of the RBAC objects.
    """

    def __init__(self, client: Client, storage: StorageFactory) -> None:
        self._client = client
        self._sets: BoundedCache[UserKey, tuple[RuleSet, float, int]] = BoundedCache(
            count=4096, size=128 << 20, largest=64 << 20, weigh_entry=lambda key, entry: weigh(key) + entry[2]
        )
        """Rule sets by user, with the end of their validity (of time.monotonic()) and their bytes."""
        self._in_flight: dict[UserKey, asyncio.Task[RuleSet]] = {}
        self._generation = 0
        self._reflectors = {config.prefix: StorageReflector(storage.resource(config), self) for config in RBAC_STORAGES}

    async def run(self) -> None:
        """Watch the RBAC objects in storage until cancelled. Sets are only cached while all watches are synced."""
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors.values():
                group.create_task(reflector.run())

    def reset(self, entries: Sequence[Entry]) -> None:
        """Drop all rule sets, because the RBAC objects (`entries`, which are not used) were listed again."""
        self._drop()

    def apply(self, event: WatchEvent) -> None:
        """Drop all rule sets, because an RBAC object has changed. `event` is not used."""
        self._drop()

    def lost(self) -> None:
        """Drop all rule sets, because changes of RBAC objects may be missed."""
        self._drop()

    def _drop(self) -> None:
        self._generation += 1
        self._sets.clear()
        self._in_flight.clear()

    async def get(self, user: UserInfo) -> RuleSet:
        """Return the rule set of a user, fetching it if it is not cached.

        Concurrent calls for one user share the request.

        Raises:
            Unavailable: the auth service cannot be reached, or its answer is invalid.
            StatusError: the auth service rejected the request.
        """
        key = (user.name, user.groups)
        cached = self._sets.recall(key)
        if cached is not None and cached[1] > time.monotonic():
            return cached[0]
        task = self._in_flight.get(key)
        if task is None:
            task = self._in_flight[key] = asyncio.create_task(self._ask(key))
        return await result_of(task)

    async def _ask(self, key: UserKey) -> RuleSet:
        generation = self._generation
        seen_revisions = {prefix: reflector.changed for prefix, reflector in self._reflectors.items()}
        try:
            body = orjson.dumps({"user": key[0], "groups": key[1], "revisions": seen_revisions})
            code, answer = await self._client.raw("POST", RULES_PATH, body, {"content-type": "application/json"})
            if code != 200:
                raise Unavailable(f"the auth service answered {code} to a question for rules")
            wire = orjson.loads(answer)
            rules = RuleSet.from_wire(wire)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise Unavailable(f"the rules that the auth service answered cannot be understood: {error}") from error
        finally:
            if self._generation == generation:
                self._in_flight.pop(key, None)
        watched = all(reflector.synced.is_set() for reflector in self._reflectors.values())
        fresh = all(
            (wire.get("revisions") or {}).get(prefix, 0) >= revision for prefix, revision in seen_revisions.items()
        )
        if watched and fresh and self._generation == generation:
            self._sets.keep(key, (rules, time.monotonic() + (wire.get("seconds") or math.inf), _PARSED * len(answer)))
        return rules


class SubjectAccessReviewer:
    """An authorizer that creates a SubjectAccessReview at the auth service for each request.

    Only servers that share no storage with the auth service cache the results.

    Args:
        client: creates the SubjectAccessReviews.
        allowed_seconds: how long to cache the decision "allow"; 0 disables caching.
        denied_seconds: how long to cache all other decisions; 0 disables caching.
    """

    def __init__(self, client: Client, *, allowed_seconds: float = 0, denied_seconds: float = 0) -> None:
        self._client = client
        self._allowed = ExpiringCache[bytes, AuthorizationResult](allowed_seconds)
        self._denied = ExpiringCache[bytes, AuthorizationResult](denied_seconds)

    async def authorize(self, attributes: Attributes) -> AuthorizationResult:
        """Return the result of a SubjectAccessReview, or NO_OPINION with the error if it cannot be created."""
        try:
            return await self.ask(attributes)
        except (StatusError, Unavailable, OSError) as error:
            return AuthorizationResult(Decision.NO_OPINION, "", f"asking the auth service: {error}")

    async def ask(self, attributes: Attributes) -> AuthorizationResult:
        """Return the result of a SubjectAccessReview, from the cache or by creating it.

        Raises:
            StatusError: the server rejected the review.
            Unavailable: the auth service is not available.
            OSError: the connection failed.
        """
        await parse_large(attributes.field_requirements, attributes.label_requirements)
        review = review_of(attributes)
        key = orjson.dumps(review["spec"], option=orjson.OPT_SORT_KEYS)
        cached = self._allowed.get(key) or self._denied.get(key)
        if cached is not None:
            return cached
        reviewed = await _METRICS.create(self._client, SUBJECT_ACCESS_REVIEWS, review)
        status = reviewed.get("status") or {}
        answer = _answer_of(status)
        (self._allowed if answer.decision is Decision.ALLOW else self._denied).put(key, answer)
        return answer


def _answer_of(status: Object) -> AuthorizationResult:
    reason, error = status.get("reason", ""), status.get("evaluationError", "")
    if status.get("allowed"):
        return AuthorizationResult(Decision.ALLOW, reason)
    return AuthorizationResult(
        Decision.DENY if status.get("denied") else Decision.NO_OPINION, reason, "" if reason else error
    )


class DelegatingAuthorizer:
    """The authorizer of core, extensions and the aggregator when auth is a separate process.

    Members of system:masters are always allowed. Otherwise a request is allowed by the user's cached RBAC rules, or
    else decided by a SubjectAccessReview.

    Args:
        rules: the rules of users.
        reviewer: decides the requests that the rules do not allow.

    Raises:
        StatusError: 503, the rules do not allow the request and the review failed.
    """

    def __init__(self, rules: RuleSetCache, reviewer: SubjectAccessReviewer) -> None:
        self._rules = rules
        self._reviewer = reviewer

    async def authorize(self, attributes: Attributes) -> AuthorizationResult:
        if SYSTEM_MASTERS in attributes.user.groups:
            return _ALLOW
        try:
            reason = (await self._rules.get(attributes.user)).reason_to_allow(attributes)
        except (StatusError, Unavailable, OSError):
            reason = None  # an older auth service or an unavailable one; the review below reports the error
        if reason is not None:
            return AuthorizationResult(Decision.ALLOW, reason)
        try:
            return await self._reviewer.ask(attributes)
        except (StatusError, Unavailable, OSError) as error:
            raise service_unavailable(f"asking the auth service: {error}", RETRY_SECONDS) from error


def review_of(attributes: Attributes) -> Object:
    """Return a new SubjectAccessReview (v1) for a request, without empty fields."""
    user = attributes.user
    spec: dict[str, Any] = {"user": user.name}
    if user.groups:
        spec["groups"] = list(user.groups)
    if user.uid:
        spec["uid"] = user.uid
    if user.extra:
        spec["extra"] = {key: list(texts) for key, texts in user.extra.items()}
    if attributes.resource_request:
        resource_attributes: dict[str, Any] = {
            "namespace": attributes.namespace,
            "verb": attributes.verb,
            "group": attributes.group,
            "version": attributes.version,
            "resource": attributes.resource,
            "subresource": attributes.subresource,
            "name": attributes.name,
        }
        spec["resourceAttributes"] = {key: text for key, text in resource_attributes.items() if text}
        if attributes.field_requirements:
            spec["resourceAttributes"]["fieldSelector"] = {"requirements": list(attributes.field_requirements)}
        if attributes.label_requirements:
            spec["resourceAttributes"]["labelSelector"] = {"requirements": list(attributes.label_requirements)}
    else:
        spec["nonResourceAttributes"] = {"path": attributes.path, "verb": attributes.verb}
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
