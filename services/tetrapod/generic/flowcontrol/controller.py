"""`FlowControl`: FlowSchemas and PriorityLevelConfigurations made into queues; requests classified by them; seats lent between levels.

Upstream: flowcontrol/apf_controller.go.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterable
from importlib.resources import files
from typing import Any, Final, NamedTuple

import orjson

from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.flowcontrol import gauges, meters
from tetrapod.generic.flowcontrol.allocation import Claim, allocate
from tetrapod.generic.flowcontrol.dealer import deal, flow_hash
from tetrapod.generic.flowcontrol.level import Level, queuing_of
from tetrapod.generic.flowcontrol.pace import Pace, weight_here, weight_of
from tetrapod.generic.flowcontrol.rules import Matcher, matcher
from tetrapod.generic.flowcontrol.status import FLOW_SCHEMAS, GROUP, FlowSchemaStatus
from tetrapod.generic.flowcontrol.turns import Turns
from tetrapod.generic.flowcontrol.work import Stats, Watches
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.user import UserInfo
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.requestinfo import RequestInfo

log = logging.getLogger(__name__)

PRIORITY_LEVELS: Final = GroupVersionResource(GROUP, "v1", "prioritylevelconfigurations")
EXEMPT: Final = "exempt"
CATCH_ALL: Final = "catch-all"
_BORROWING_SECONDS: Final = 10.0
_MOST_FLOWS: Final = 20_000


class Flow(NamedTuple):
    """What requests of one kind, of one user, have in common."""

    level: Level
    labels: tuple[str, str]  # priority level, flow schema
    distinguisher: str
    hand: tuple[int, ...]
    headers: tuple[tuple[bytes, bytes], tuple[bytes, bytes]]
    seats: list[float]  # rows of the two histograms
    execution: list[float]
    key: tuple[str, str]  # of a level and a user, who take turns
    exempt: bool


class _Schema(NamedTuple):
    name: str
    uid: str
    level: str
    method: str
    matches: Matcher


class FlowControl:
    """`limit` is the seats of the whole server: the two --max-…-inflight flags together. `passes_on`: to other processes."""

    def __init__(self, limit: int, stats: Stats | None = None, *, passes_on: bool = False) -> None:
        self.limit = limit
        self.levels: dict[str, Level] = {}
        self.watches = Watches()
        self.turns = Turns()
        self.pace = Pace(self.turns.in_company, self.turns.pressed)
        self.weight_of = weight_of if passes_on else weight_here
        """Of a request of this verb, for `pace`; 0: it is not held up."""
        self.stats: Stats = stats or _unknown
        self._schemas: list[_Schema] = []
        self._flows: dict[tuple[Any, ...], Flow] = {}
        self._seats_of_all = 0
        self._informers: tuple[Informer, Informer] | None = None
        self._pending = False
        self.digest([], [])
        gauges.register(lambda: [level.queues for level in self.levels.values()])

    # --- requests

    def classify(self, user: UserInfo, info: RequestInfo) -> Flow:
        resource = info.is_resource_request
        asked = (info.api_group, info.resource, info.subresource, info.namespace) if resource else info.path
        key = (user.name, user.groups, info.verb, asked)
        flow = self._flows.get(key)
        if flow is None:
            if len(self._flows) >= _MOST_FLOWS:
                self._flows.clear()
            flow = self._flows[key] = self._flow(user, info)
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
            hand = deal(flow_hash(schema.name, distinguisher) if queues > 1 else 0, queues, level.queues.queuing.hand_size)
        headers = (
            (b"x-kubernetes-pf-flowschema-uid", schema.uid.encode()),
            (b"x-kubernetes-pf-prioritylevel-uid", level.uid.encode()),
        )
        labels = (level.name, schema.name)
        execution = meters.EXECUTION.row((*labels, "watch" if info.verb == "watch" and info.is_resource_request else "regular"))
        return Flow(level, labels, distinguisher, hand, headers, meters.SEATS.row(labels), execution, (level.name, user.name), level.exempt)

    # --- configuration

    def digest(self, levels: Iterable[Object], schemas: Iterable[Object]) -> None:
        """Take up a new configuration; levels that are gone stay until their last request has been served."""
        wanted = {obj["metadata"]["name"]: obj for obj in levels if queuing_of(obj) is not None}
        found = {name: self._level(name, obj) for name, obj in wanted.items()}
        usable = [obj for obj in schemas if _level_of(obj) in found]
        for name, level in self.levels.items():
            mandatory = name in (EXEMPT, CATCH_ALL)
            if name not in found and (mandatory or not level.queues.idle):
                level.quiescing = not mandatory
                found[name] = level
        for name in (EXEMPT, CATCH_ALL):
            if name not in found:
                found[name] = self._level(name, _mandatory("prioritylevelconfigurations", name))
        self._order(usable)
        self._divide(found)
        for name in self.levels.keys() - found.keys():
            self.levels[name].forget()
        self.levels = found
        self._flows.clear()

    def _level(self, name: str, obj: Object) -> Level:
        level = self.levels.get(name) or Level(name)
        level.take(obj)
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
                _level_of(obj),
                (obj["spec"].get("distinguisherMethod") or {}).get("type", ""),
                matcher(obj),
            )
            for obj in schemas
        ]

    def _divide(self, levels: dict[str, Level]) -> None:
        """Nominal limits by shares (rounded up, so their sum may be a little more than the server's limit), then what is lent."""
        shares = sum(level.shares for level in levels.values())
        self._seats_of_all = sum(level.set_limits(self.limit, shares) for level in levels.values())
        self._lend(levels)

    def _lend(self, levels: dict[str, Level]) -> None:
        """Lend seats from levels that do not need theirs to those that could use more (upstream: updateBorrowingLocked)."""
        limited, left = [], self._seats_of_all
        for level in levels.values():
            level.note_demand()
            if level.exempt:
                level.set_current(max(level.lower, level.highest))
                left -= level.current
            else:
                limited.append(level)
        least = sum(level.lower for level in limited)
        needed = sum(level.needed for level in limited)
        if left <= least:
            meters.FAIR_FRACTION.set((), 0)
            for level in limited:
                level.set_current(level.lower)
        elif left <= needed:
            meters.FAIR_FRACTION.set((), 0)
            for level in limited:
                level.set_current(level.lower + _round((level.needed - level.lower) * (left - least) / (needed - least)))
        else:
            self._share(limited)

    def _share(self, limited: list[Level]) -> None:
        claims = [Claim(max(level.needed, level.smoothed), level.needed, level.upper) for level in limited]
        try:
            seats, fair = allocate(self._seats_of_all, claims)
        except ValueError as error:
            log.warning("limits of priority levels stay as they are: %s", error)
            return
        meters.FAIR_FRACTION.set((), fair)
        for level, claim, number in zip(limited, claims, seats, strict=True):
            meters.TARGET.set((level.name,), claim.target)
            level.set_current(_round(number))

    # --- life

    def follow(self, client: Client, lifecycle: Lifecycle) -> None:
        """Follow the objects from the start on: they are read by the hook `priority-and-fairness-config-consumer`."""
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
        if not self._pending:
            self._pending = True
            asyncio.get_running_loop().call_soon(self._redigest)

    def _redigest(self) -> None:
        self._pending = False
        if self._informers is not None and all(i.synced.is_set() for i in self._informers):
            levels, schemas = self._informers
            self.digest(levels.objects.values(), schemas.objects.values())

    async def _borrow(self) -> None:
        if self._informers is not None:
            for informer in self._informers:
                await informer.synced.wait()
            self._redigest()
        while True:
            await asyncio.sleep(_BORROWING_SECONDS)
            if any(level.quiescing and level.queues.idle for level in self.levels.values()):
                self._redigest()
            self._lend(self.levels)


def _level_of(schema: Object) -> str:
    name: str = ((schema.get("spec") or {}).get("priorityLevelConfiguration") or {}).get("name", "")
    return name


def _mandatory(resource: str, name: str) -> Object:
    """An object that is imagined while it is not there."""
    objects: list[Object] = orjson.loads(files(__package__).joinpath("mandatory.json").read_bytes())[resource]
    return next(obj for obj in objects if obj["metadata"]["name"] == name)


def _round(number: float) -> int:
    """Half away from zero, as Go's math.Round."""
    return math.floor(number + 0.5)


def _unknown(group: str, resource: str) -> None:
    return None
