"""`FlowControl`: builds the queues of priority levels, classifies requests, and lends seats between levels.

Queues follow from the FlowSchemas and PriorityLevelConfigurations.
Upstream: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable
from importlib.resources import files
from typing import Any, Final, NamedTuple

import orjson

from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.flowcontrol import metrics, state_metrics
from tetrapod.generic.flowcontrol.allocation import Claim, allocate, round_seats
from tetrapod.generic.flowcontrol.flow_limit import FlowLimiter, forwarded_weight, local_weight
from tetrapod.generic.flowcontrol.level import Level, queuing_of
from tetrapod.generic.flowcontrol.queueset import QueueSet
from tetrapod.generic.flowcontrol.rule_matching import Matcher, level_name, matcher
from tetrapod.generic.flowcontrol.shuffle_sharding import deal, flow_hash
from tetrapod.generic.flowcontrol.status import FLOW_SCHEMAS, GROUP, FlowSchemaStatus
from tetrapod.generic.flowcontrol.work_estimator import Stats, Watches
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.metrics.series import restore, retire
from tetrapod.generic.scheduling.config import DEFAULT, FairScheduling
from tetrapod.generic.scheduling.scheduler import FairScheduler
from tetrapod.machinery.boundedcache import BoundedCache, weigh
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.requestinfo import RequestInfo
from tetrapod.machinery.user import UserInfo, is_service

log = logging.getLogger(__name__)

PRIORITY_LEVELS: Final = GroupVersionResource(GROUP, "v1", "prioritylevelconfigurations")
EXEMPT: Final = "exempt"
CATCH_ALL: Final = "catch-all"
_BORROWING_SECONDS: Final = 10.0
_FLOW_BYTES: Final = 400
"""Approximate size of a Flow in bytes, without the level and the metric rows, which flows share."""


class Flow(NamedTuple):
    """The classification of the requests with the same user, verb and resource (or path).

    Attributes:
        level: the priority level.
        labels: the names of the priority level and of the FlowSchema, for metrics.
        distinguisher: the user or the namespace, as the FlowSchema says; "" if it does not distinguish flows.
        hand: the indexes of the queues from which its requests choose.
        headers: the response headers with the UIDs of the FlowSchema and of the priority level.
        seats: the series of the histogram work_estimated_seats in which its requests are counted.
        execution: the series of the histogram request_execution_seconds in which its requests are counted.
        key: the names of the priority level and of the user, by which `FairScheduler` shares the event loop.
        exempt: whether the priority level is exempt from limits.
    """

    level: Level
    labels: tuple[str, str]
    distinguisher: str
    hand: tuple[int, ...]
    headers: tuple[tuple[bytes, bytes], tuple[bytes, bytes]]
    seats: list[float]
    execution: list[float]
    key: tuple[str, str]
    exempt: bool


class _Schema(NamedTuple):
    name: str
    uid: str
    level: str
    method: str
    matches: Matcher


class FlowControl:
    """The API priority and fairness controller.

    It classifies requests into flows, and has the queues and limits of the priority levels.

    Attributes:
        levels: the priority levels by name.
        watches: the open watches, which a write's estimate of seats depends on.
        scheduler: shares the event loop among flows.
        limiter: limits the recent requests of each flow.
        weight_of: returns the weight of a verb for `limiter`; requests of weight 0 are not limited.
        stats: returns the number and average size of a resource's objects.
    """

    def __init__(
        self, limit: int, stats: Stats | None = None, *, forwards: bool = False, scheduling: FairScheduling = DEFAULT
    ) -> None:
        """Create the controller. Until `follow`, only the two mandatory levels exist, with their default configuration.

        Args:
            limit: the seats of the whole server, the sum of --max-requests-inflight and
                --max-mutating-requests-inflight.
            stats: returns the number and average size of a resource's objects; None if these are unknown.
            forwards: whether requests are forwarded to other processes on the same CPUs.
            scheduling: the settings of the fair scheduling of the event loop.
        """
        self.limit = limit
        self.levels: dict[str, Level] = {}
        self.watches = Watches()
        self.scheduler = FairScheduler(scheduling, is_background=_is_of_service, group_of=_level_of)
        self.limiter = FlowLimiter(self.scheduler.shared, self.scheduler.cpu_scarce, scheduling)
        self.weight_of = forwarded_weight if forwards else local_weight
        self.stats: Stats = stats or _unknown
        self._schemas: list[_Schema] = []
        self._flows: BoundedCache[tuple[Any, ...], Flow] = BoundedCache(
            count=20_000, size=16 << 20, largest=64 << 10, weigh_entry=lambda key, _: weigh(key) + _FLOW_BYTES
        )
        self._seats_of_all = 0
        self._informers: tuple[Informer, Informer] | None = None
        self._reconfiguring = False
        self.configure([], [])
        state_metrics.publish(self._queue_sets)

    # --- requests

    def classify(self, user: UserInfo, info: RequestInfo) -> Flow:
        """Return the flow of a request, by the first FlowSchema that matches it. Flows are cached."""
        resource = info.is_resource_request
        target = (info.api_group, info.resource, info.subresource, info.namespace) if resource else info.path
        key = (user.name, user.groups, info.verb, target)
        flow = self._flows.get(key)
        if flow is None:
            flow = self._flows.recall(key)
            if flow is None:
                flow = self._flows.keep(key, self._flow(user, info))
        return flow

    def _flow(self, user: UserInfo, info: RequestInfo) -> Flow:
        schema = next((s for s in self._schemas if s.matches(user, info)), self._schemas[-1])
        level = self.levels[schema.level]
        distinguisher = ""
        hand: tuple[int, ...] = ()
        queues = level.queues.queuing.queues
        if queues > 0:
            if queues > 1:
                distinguisher = {"ByUser": user.name, "ByNamespace": info.namespace}.get(schema.method, "")
            hand = deal(
                flow_hash(schema.name, distinguisher) if queues > 1 else 0, queues, level.queues.queuing.hand_size
            )
        headers = (
            (b"x-kubernetes-pf-flowschema-uid", schema.uid.encode()),
            (b"x-kubernetes-pf-prioritylevel-uid", level.uid.encode()),
        )
        labels = (level.name, schema.name)
        execution = metrics.EXECUTION.row(
            (*labels, "watch" if info.verb == "watch" and info.is_resource_request else "regular")
        )
        return Flow(
            level,
            labels,
            distinguisher,
            hand,
            headers,
            metrics.SEATS.row(labels),
            execution,
            (level.name, user.name),
            level.exempt,
        )

    def _queue_sets(self) -> list[QueueSet]:
        return [level.queues for level in self.levels.values()]

    # --- configuration

    def configure(self, levels: Iterable[Object], schemas: Iterable[Object]) -> None:
        """Replace the configuration by these PriorityLevelConfigurations and FlowSchemas.

        Inconsistent levels, and schemas of missing levels, are ignored. A missing mandatory level keeps its former
        configuration, or has the default one if it never had another. A missing mandatory schema is replaced by its
        default. Any other deleted level remains until its last request has been served.
        """
        valid = [obj for obj in levels if obj.get("spec") and queuing_of(obj) is not None]
        new_levels = {(name := obj["metadata"]["name"]): self._level(name, obj) for obj in valid}
        usable = [obj for obj in schemas if obj.get("spec") and level_name(obj) in new_levels]
        for name, level in self.levels.items():
            mandatory = name in (EXEMPT, CATCH_ALL)
            if name not in new_levels and (mandatory or not level.queues.idle):
                level.quiescing = not mandatory
                new_levels[name] = level
        for name in (EXEMPT, CATCH_ALL):
            if name not in new_levels:
                new_levels[name] = self._level(name, _mandatory("prioritylevelconfigurations", name))
        former_schemas = {schema.name for schema in self._schemas}
        self._order(usable)
        _update_series("flow_schema", former_schemas, {schema.name for schema in self._schemas})
        _update_series("priority_level", self.levels.keys(), new_levels.keys())
        self._assign_limits(new_levels)
        self.levels = new_levels
        self._flows.clear()

    def _level(self, name: str, obj: Object) -> Level:
        level = self.levels.get(name) or Level(name)
        level.apply_spec(obj)
        return level

    def _order(self, schemas: list[Object]) -> None:
        names = {obj["metadata"]["name"] for obj in schemas}
        schemas = sorted(schemas, key=lambda o: (o["spec"].get("matchingPrecedence", 1000), o["metadata"]["name"]))
        if EXEMPT not in names:
            schemas.insert(0, _mandatory("flowschemas", EXEMPT))
        if CATCH_ALL not in names:
            schemas.append(_mandatory("flowschemas", CATCH_ALL))
        self._schemas = [
            _Schema(
                obj["metadata"]["name"],
                obj["metadata"].get("uid", ""),
                level_name(obj),
                (obj["spec"].get("distinguisherMethod") or {}).get("type", ""),
                matcher(obj),
            )
            for obj in schemas
        ]

    def _assign_limits(self, levels: dict[str, Level]) -> None:
        """Set the limits of the levels by their shares, and lend seats.

        Nominal limits are rounded up, so their sum may slightly exceed the server's limit.

        Args:
            levels: all priority levels by name.
        """
        shares = sum(level.shares for level in levels.values())
        self._seats_of_all = sum(level.set_limits(self.limit, shares) for level in levels.values())
        self._lend(levels)

    def _lend(self, levels: dict[str, Level]) -> None:
        """Set the current limit of each level: levels lend seats that they do not need to levels that could use more.

        Upstream: updateBorrowingLocked
        """
        limited, remaining = [], self._seats_of_all
        for level in levels.values():
            level.update_demand()
            if level.exempt:
                level.set_current(max(level.lower, level.highest))
                remaining -= level.current
            else:
                limited.append(level)
        least = sum(level.lower for level in limited)
        needed = sum(level.needed for level in limited)
        if remaining <= least:
            metrics.FAIR_FRACTION.set((), 0)
            for level in limited:
                level.set_current(level.lower)
        elif remaining <= needed:
            metrics.FAIR_FRACTION.set((), 0)
            for level in limited:
                level.set_current(
                    level.lower + round_seats((level.needed - level.lower) * (remaining - least) / (needed - least))
                )
        else:
            self._share(limited)

    def _share(self, limited: list[Level]) -> None:
        claims = [Claim(max(level.needed, level.smoothed), level.needed, level.upper) for level in limited]
        try:
            seats, fair = allocate(self._seats_of_all, claims)
        except ValueError as error:
            log.warning("limits of priority levels are unchanged: %s", error)
            return
        metrics.FAIR_FRACTION.set((), fair)
        for level, claim, number in zip(limited, claims, seats, strict=True):
            metrics.TARGET.set((level.name,), claim.target)
            level.set_current(round_seats(number))

    # Following the configuration

    def follow(self, client: Client, lifecycle: Lifecycle) -> None:
        """Create the informers of the configuration, and register the post-start hooks that start them.

        The hooks are `priority-and-fairness-config-consumer` and `priority-and-fairness-filter`. From then on, each
        change of the configuration is applied, and seats are lent every 10 seconds.
        """
        levels, schemas = Informer(client, PRIORITY_LEVELS), Informer(client, FLOW_SCHEMAS)
        self._informers = (levels, schemas)
        for informer in self._informers:
            informer.handlers.append(self._changed)

        status = FlowSchemaStatus(client, schemas, levels)

        async def consume() -> None:
            lifecycle.follow("prioritylevelconfigurations", levels)
            lifecycle.follow("flowschemas", schemas)
            lifecycle.background("flow-schema-status", status.run())

        async def maintain() -> None:
            lifecycle.background("priority-and-fairness-borrowing", self._borrow())

        lifecycle.on_start("priority-and-fairness-config-consumer", consume)
        lifecycle.on_start("priority-and-fairness-filter", maintain)

    def _changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and old.get("spec") == new.get("spec"):
            return
        if not self._reconfiguring:
            self._reconfiguring = True
            asyncio.get_running_loop().call_soon(self._reconfigure)

    def _reconfigure(self) -> None:
        self._reconfiguring = False
        if self._informers is not None and all(i.synced.is_set() for i in self._informers):
            levels, schemas = self._informers
            self.configure(levels.objects.values(), schemas.objects.values())

    async def _borrow(self) -> None:
        if self._informers is not None:
            for informer in self._informers:
                await informer.synced.wait()
            self._reconfigure()
        while True:
            await asyncio.sleep(_BORROWING_SECONDS)
            if any(level.quiescing and level.queues.idle for level in self.levels.values()):
                self._reconfigure()
            self._lend(self.levels)


def _is_of_service(key: Any) -> bool:
    """Return whether `Flow.key` is that of a service's requests."""
    return is_service(key[1])


def _level_of(key: Any) -> str:
    """Return the priority level of `Flow.key`."""
    level: str = key[0]
    return level


def _update_series(label: str, former: Collection[str], current: Collection[str]) -> None:
    """Drop the metric series of objects that do not exist any more, and accept new series of those that do.

    Args:
        label: the metric label that contains the name of an object.
        former: the names of the objects before the change of the configuration.
        current: the names of the objects after it.
    """
    for name in set(former) - set(current):
        retire({label: name})
    for name in current:
        restore({label: name})


def _mandatory(resource: str, name: str) -> Object:
    """Return the default of a mandatory FlowSchema or PriorityLevelConfiguration, for a cluster that lacks the object.

    Args:
        resource: `flowschemas` or `prioritylevelconfigurations`.
        name: the name of the object.
    """
    objects: list[Object] = orjson.loads(files(__package__).joinpath("mandatory.json").read_bytes())[resource]
    return next(obj for obj in objects if obj["metadata"]["name"] == name)


def _unknown(group: str, resource: str) -> None:
    return None
