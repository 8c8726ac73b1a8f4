"""The admission plugin EventRateLimit, off by default.

It limits the rate of events in total, by namespace, by user, or by source and involved object.

As upstream, events of events.k8s.io are not limited. Each replica counts only its own requests.
Upstream: plugin/pkg/admission/eventratelimit.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tetrapod.generic.admission.interface import Attributes, Plugin
from tetrapod.generic.configuration.loading import load
from tetrapod.generic.configuration.schemas import integer, kind, list_of, string, struct
from tetrapod.machinery import field
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.status import StatusError

Clock = Callable[[], float]
_GROUP_VERSION: Final = "eventratelimit.admission.k8s.io/v1alpha1"
_CACHED: Final = 4096


def _source_and_object(attributes: Attributes) -> str:
    event = attributes.object or {}
    source, involved = event.get("source") or {}, event.get("involvedObject") or {}
    parts = [source.get(part) for part in ("component", "host")]
    parts += [involved.get(part) for part in ("kind", "namespace", "name", "uid", "apiVersion")]
    return "".join(part or "" for part in parts)


_KEYS: Final[dict[str, Callable[[Attributes], str]]] = {
    "Server": lambda _: "",
    "Namespace": lambda attributes: attributes.namespace,
    "User": lambda attributes: attributes.user.name,
    "SourceAndObject": _source_and_object,
}
"""For each type of limit, the key by which events are counted together."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One entry of `limits` in the configuration file.

    Attributes:
        type: "Server", "Namespace", "User" or "SourceAndObject".
        qps: the number of events per second that are accepted on average.
        burst: the number of events that are accepted at once after a pause.
        cache_size: the maximum number of token buckets, one for each namespace, user, or source and object.
    """

    type: str
    qps: int
    burst: int
    cache_size: int = _CACHED


def read_limits(data: bytes | None) -> list[Limit]:
    """Return the limits of a Configuration file, or [] without a file (`data` is None).

    Raises:
        ValueError: the file is invalid; with upstream's text.
    """
    config: Object = {} if data is None else load(data, {(_GROUP_VERSION, "Configuration"): _shape()}, strict=False)
    limits: Sequence[Object] = config.get("limits") or ()
    if data is not None and (errors := _errors(limits)):
        raise ValueError(field.aggregate(errors))
    return [Limit(limit["type"], limit["qps"], limit["burst"], limit.get("cacheSize") or _CACHED) for limit in limits]


class TokenBucket:
    """A token bucket with `burst` tokens, full at first and refilled with `qps` tokens a second.

    The arguments `now` are readings of a monotonic clock, in seconds.

    Upstream: golang.org/x/time/rate.
    """

    __slots__ = ("_burst", "_qps", "_seen", "_tokens")

    def __init__(self, qps: int, burst: int, now: float) -> None:
        self._qps, self._burst, self._tokens, self._seen = qps, burst, float(burst), now

    def take(self, now: float) -> bool:
        """Take one token and return True, or return False if the bucket has less than one.

        Args:
            now: the current time of the monotonic clock, in seconds.
        """
        tokens = min(self._burst, self._tokens + max(now - self._seen, 0.0) * self._qps)
        if tokens < 1:
            return False
        self._tokens, self._seen = tokens - 1, now
        return True


class EventRateLimit(Plugin):
    """The plugin that rejects creates and updates of core/v1 Events with 429 while a limit is reached.

    Dry runs are neither limited nor counted.
    """

    name = "EventRateLimit"
    operations = frozenset({"CREATE", "UPDATE"})

    def __init__(self, limits: Sequence[Limit], clock: Clock = time.monotonic) -> None:
        self._limits = [_Enforcer(limit, clock) for limit in limits]

    def handles(self, attributes: Attributes) -> bool:
        return (attributes.kind.group, attributes.kind.kind) == ("", "Event") and not attributes.dry_run

    async def validate(self, attributes: Attributes) -> None:
        """Count the event against every limit, even if an earlier limit has been reached.

        Raises:
            StatusError: 429 with the texts of all limits that are reached.
        """
        if messages := [rejection for limit in self._limits if (rejection := limit.rejection(attributes))]:
            raise StatusError(429, "TooManyRequests", f"Too many requests: {aggregate_errors(messages)}")


_LONGEST: Final = 512
"""Keys up to this number of characters are stored as they are, longer ones as a hash."""


class _Enforcer:
    """One limit with a token bucket for each key, such as a namespace.

    It holds the buckets of the `cache_size` most recently used keys. An evicted key starts again with a full bucket.
    """

    def __init__(self, limit: Limit, clock: Clock) -> None:
        self._limit, self._clock = limit, clock
        self._key = _KEYS[limit.type]
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def rejection(self, attributes: Attributes) -> str:
        """Take a token for the event; return "" on success, or the error text if the limit is reached."""
        key, now = self._key(attributes), self._clock()
        name = key if len(key) <= _LONGEST else hashlib.blake2b(key.encode("utf-8", "surrogatepass")).hexdigest()
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = TokenBucket(self._limit.qps, self._limit.burst, now)
            if len(self._buckets) > self._limit.cache_size:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(name)
        return "" if bucket.take(now) else f"limit reached on type {self._limit.type} for key {key}"


def _errors(limits: Sequence[Object]) -> list[FieldError]:
    errors = [] if limits else [field.invalid("limits", [], "must not be empty")]
    for i, limit in enumerate(limits):
        path, type_ = f"limits[{i}]", limit.get("type") or ""
        if type_ not in _KEYS:
            errors.append(field.not_supported(f"{path}.type", type_, sorted(_KEYS)))
        numbers = {name: limit.get(name) or 0 for name in ("burst", "qps")}
        errors += [
            field.invalid(f"{path}.{name}", value, "must be positive") for name, value in numbers.items() if value <= 0
        ]
        if type_ != "Server" and (size := limit.get("cacheSize") or 0) < 0:
            errors.append(field.invalid(f"{path}.cacheSize", size, "must not be negative"))
    return errors


def _shape() -> SchemaNode:
    limit = struct(
        "v1alpha1.Limit", type=string(), qps=integer("int32"), burst=integer("int32"), cacheSize=integer("int32")
    )
    return kind("v1alpha1.Configuration", limits=list_of(limit))
