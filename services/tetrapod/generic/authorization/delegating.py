"""Authorization by the auth service, without asking it for every request.

The whole rule set of a user is fetched once and matched here; any event on an RBAC key in storage drops all sets at once.
What the rules do not allow is asked by SubjectAccessReview: other authorizers may know better, and reasons come from there.
A server that shares no storage with auth (an external one) asks by SubjectAccessReview only, with upstream's short cache.
Upstream: k8s.io/apiserver/pkg/authorization/authorizerfactory/delegating.go, plugin/pkg/authorizer/webhook.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from typing import Any, Final

import orjson

from tetrapod.generic.among_services.names import RULES_PATH
from tetrapod.generic.authentication.tokencache import ExpiringCache
from tetrapod.generic.authorization.follow import Following
from tetrapod.generic.authorization.interface import Answer, Attributes, Decision
from tetrapod.generic.authorization.rbac_storage import RBAC_STORAGES
from tetrapod.generic.authorization.rules import RuleSet
from tetrapod.generic.client.interface import Client
from tetrapod.generic.storage.interface import Entry, StorageFactory, WatchEvent
from tetrapod.generic.unavailable import RETRY_SECONDS, Unavailable
from tetrapod.generic.user import SYSTEM_MASTERS, UserInfo
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError, service_unavailable

SUBJECT_ACCESS_REVIEWS: Final = GroupVersionResource("authorization.k8s.io", "v1", "subjectaccessreviews")
_USER_LIMIT: Final = 2048

UserKey = tuple[str, tuple[str, ...]]


class RuleSetCache:
    """Rule sets by user name and groups, of no older state than any RBAC event seen here."""

    def __init__(self, client: Client, storage: StorageFactory) -> None:
        self._client = client
        self._sets: dict[UserKey, tuple[RuleSet, float]] = {}  # and until when they are good
        self._asking: dict[UserKey, asyncio.Task[RuleSet]] = {}
        self._generation = 0
        self._followings = {config.prefix: Following(storage.resource(config), self) for config in RBAC_STORAGES}

    async def run(self) -> None:
        """Watch the RBAC keys until cancelled."""
        async with asyncio.TaskGroup() as group:
            for following in self._followings.values():
                group.create_task(following.run())

    def reset(self, entries: Sequence[Entry]) -> None:
        self._drop()

    def apply(self, event: WatchEvent) -> None:
        self._drop()

    def lost(self) -> None:
        self._drop()

    def _drop(self) -> None:
        self._generation += 1
        self._sets.clear()
        self._asking.clear()

    async def get(self, user: UserInfo) -> RuleSet:
        key = (user.name, user.groups)
        found = self._sets.get(key)
        if found is not None and found[1] > time.monotonic():
            return found[0]
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._ask(key))
        return await asyncio.shield(task)

    async def _ask(self, key: UserKey) -> RuleSet:
        generation = self._generation
        seen = {prefix: following.changed for prefix, following in self._followings.items()}
        try:
            body = orjson.dumps({"user": key[0], "groups": key[1], "revisions": seen})
            code, answer = await self._client.raw("POST", RULES_PATH, body, {"content-type": "application/json"})
            if code != 200:
                raise Unavailable(f"the auth service answered {code} to a question for rules")
            wire = orjson.loads(answer)
            rules = RuleSet.from_wire(wire)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Unavailable(f"the rules that the auth service answered cannot be understood: {error}") from error
        finally:
            if self._generation == generation:
                self._asking.pop(key, None)
        watched = all(following.synced.is_set() for following in self._followings.values())
        fresh = all((wire.get("revisions") or {}).get(prefix, 0) >= revision for prefix, revision in seen.items())
        if watched and fresh and self._generation == generation:
            if len(self._sets) >= _USER_LIMIT:
                self._sets.clear()
            self._sets[key] = rules, time.monotonic() + (wire.get("seconds") or math.inf)
        return rules


class SubjectAccessReviewer:
    """Asks by SubjectAccessReview. With caching times (external servers) answers are kept as long as upstream keeps them."""

    def __init__(self, client: Client, *, allowed_seconds: float = 0, denied_seconds: float = 0) -> None:
        self._client = client
        self._allowed = ExpiringCache[bytes, Answer](allowed_seconds)
        self._denied = ExpiringCache[bytes, Answer](denied_seconds)

    async def authorize(self, attributes: Attributes) -> Answer:
        try:
            return await self.ask(attributes)
        except (StatusError, Unavailable, OSError) as error:
            return Answer(Decision.NO_OPINION, "", f"asking the auth service: {error}")

    async def ask(self, attributes: Attributes) -> Answer:
        """Raises StatusError, Unavailable, OSError: no answer is to be had."""
        review = review_of(attributes)
        key = orjson.dumps(review["spec"], option=orjson.OPT_SORT_KEYS)
        found = self._allowed.get(key) or self._denied.get(key)
        if found is not None:
            return found
        status = (await self._client.create(SUBJECT_ACCESS_REVIEWS, "", review)).get("status") or {}
        answer = _answer_of(status)
        (self._allowed if answer.decision is Decision.ALLOW else self._denied).put(key, answer)
        return answer


def _answer_of(status: Object) -> Answer:
    reason, error = status.get("reason", ""), status.get("evaluationError", "")
    if status.get("allowed"):
        return Answer(Decision.ALLOW, reason)
    return Answer(Decision.DENY if status.get("denied") else Decision.NO_OPINION, reason, "" if reason else error)


class DelegatingAuthorizer:
    """For core, extensions and the aggregator where they run apart from auth. Raises StatusError 503 where auth cannot be asked."""

    def __init__(self, rules: RuleSetCache, reviewer: SubjectAccessReviewer) -> None:
        self._rules = rules
        self._reviewer = reviewer

    async def authorize(self, attributes: Attributes) -> Answer:
        if SYSTEM_MASTERS in attributes.user.groups:
            return Answer(Decision.ALLOW)
        try:
            reason = (await self._rules.get(attributes.user)).reason_to_allow(attributes)
        except (StatusError, Unavailable, OSError):
            reason = None  # an older auth, or none: the review below says so
        if reason is not None:
            return Answer(Decision.ALLOW, reason)
        try:
            return await self._reviewer.ask(attributes)
        except (StatusError, Unavailable, OSError) as error:
            raise service_unavailable(f"asking the auth service: {error}", RETRY_SECONDS) from error


def review_of(attributes: Attributes) -> Object:
    """The SubjectAccessReview that asks what `attributes` ask."""
    user = attributes.user
    spec: dict[str, Any] = {"user": user.name}
    if user.groups:
        spec["groups"] = list(user.groups)
    if user.uid:
        spec["uid"] = user.uid
    if user.extra:
        spec["extra"] = {key: list(texts) for key, texts in user.extra.items()}
    if attributes.resource_request:
        asked: dict[str, Any] = {
            "namespace": attributes.namespace,
            "verb": attributes.verb,
            "group": attributes.group,
            "version": attributes.version,
            "resource": attributes.resource,
            "subresource": attributes.subresource,
            "name": attributes.name,
        }
        spec["resourceAttributes"] = {key: text for key, text in asked.items() if text}
        if attributes.field_requirements:
            spec["resourceAttributes"]["fieldSelector"] = {"requirements": list(attributes.field_requirements)}
        if attributes.label_requirements:
            spec["resourceAttributes"]["labelSelector"] = {"requirements": list(attributes.label_requirements)}
    else:
        spec["nonResourceAttributes"] = {"path": attributes.path, "verb": attributes.verb}
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
