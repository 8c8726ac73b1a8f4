"""`Span`: one step of a request with its times; `Trace`: all spans of a request.

They are recorded only for traced requests.

Code that should be visible in traces uses `with start("name"):`, which costs one read of a context variable if the
request is not traced. The current span is a context variable, so that in-process calls and tasks started by a request
become its children. Upstream: k8s.io/component-base/tracing/tracing.go; names and attributes are upstream's where it
has the span.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Final, Literal, ParamSpec, TypeAlias, TypeVar, cast

from tetrapod.machinery.random_bits import random_bits

MOST_SPANS: Final = 2000
"""The most spans of one trace. A request that does something for each of many objects exceeds it; the trace then says
how many were dropped.
"""
INTERNAL, SERVER, CLIENT = 1, 2, 3
"""Kinds of spans, by OTLP's numbers."""
COMPONENT: Final = "k8s.io/component-base/tracing"
"""The scope of most of upstream's spans."""

Attributes: TypeAlias = dict[str, Any]
P = ParamSpec("P")
R = TypeVar("R")

_current: ContextVar[Span | None] = ContextVar("tetrapod span", default=None)
current: Final = _current.get
"""Return the current span, or None if the request is not traced."""


class Trace:
    """The spans of one request.

    Args:
        trace_id: the id; 0 for a random one.
        detailed: whether the trace is returned to the client, so that more spans are recorded.
        sampled: whether the trace is exported.

    Attributes:
        granted: whether it was checked that the user may see the trace.
        carried: headers that are forwarded with requests to other servers (tracestate, baggage).
        links: the trace id and span id of spans that are linked to the trace.
        dropped: the number of spans that were not recorded, because there were too many.
        failure: the id of the exception that was recorded last: one that passes through many spans is recorded once.
        closed: whether no more spans and events are recorded.
        request: attributes of the request that spans below its handler repeat: `audit-id`, `method`, `url`, `protocol`.
    """

    def __init__(self, trace_id: int = 0, *, detailed: bool = False, sampled: bool = False) -> None:
        self.trace_id = trace_id or random_bits(128) or 1
        self.detailed, self.sampled = detailed, sampled
        self.granted = False
        self.carried: list[tuple[bytes, bytes]] = []
        self.links: list[tuple[int, int]] = []
        self.dropped = 0
        self.failure = 0
        self.closed = False
        self.request: Attributes = {}
        self._count = 0

    def admits(self) -> bool:
        """Count one more span and return True, or return False if it must not be recorded.

        No span is recorded after the trace was closed. Spans beyond `MOST_SPANS` are not recorded, but counted in
        `dropped`.
        """
        if self.closed or self._count >= MOST_SPANS:
            self.dropped += not self.closed
            return False
        self._count += 1
        return True


class Span:
    """A step of a request with its times, as a context manager.

    Inside the context it is the current span, so spans that are started there are its children. The end of the context
    ends it, and an exception that leaves the context is its error.

    Args:
        trace: the trace that it belongs to.
        name: the name.
        parent_id: the id of its parent; 0 for none.
        kind: INTERNAL, SERVER or CLIENT.
        scope: the OpenTelemetry instrumentation scope.

    Attributes:
        events: pairs of a time (of time.monotonic()) and a name.
        children: the spans that were started in this one.
        grafts: spans of another service, as its response contained them.
        error: the text of the error; "" for none.
        started: when it started, of time.monotonic().
        ended: when it ended; 0 before.
    """

    __slots__ = ("_token", "attributes", "children", "ended", "error", "events", "grafts", "kind", "name", "parent_id",
                 "scope", "span_id", "started", "trace")  # fmt: skip

    def __init__(
        self, trace: Trace, name: str, parent_id: int = 0, kind: int = INTERNAL, scope: str = COMPONENT
    ) -> None:
        self.trace, self.name, self.parent_id, self.kind, self.scope = trace, name, parent_id, kind, scope
        self.span_id = random_bits(64) or 1
        self.attributes: Attributes = {}
        self.events: list[tuple[float, str]] = []
        self.children: list[Span] = []
        self.grafts: list[dict[str, Any]] = []
        self.error = ""
        self.started = time.monotonic()
        self.ended = 0.0
        self._token: Token[Span | None] | None = None

    def __bool__(self) -> Literal[True]:
        return True

    def child(self, name: str, kind: int = INTERNAL, scope: str = COMPONENT) -> Span | Nothing:
        """Start a child and return it, or NOTHING if the trace records no more spans.

        The caller ends the span, by using it as a context manager or by `end`.

        Args:
            name: the name of the span.
            kind: INTERNAL, SERVER or CLIENT.
            scope: the OpenTelemetry instrumentation scope.
        """
        if not self.trace.admits():
            return NOTHING
        span = Span(self.trace, name, self.span_id, kind, scope)
        self.children.append(span)
        return span

    def set(self, **attributes: Any) -> None:
        """Set attributes of the span."""
        self.attributes.update(attributes)

    def put(self, attributes: Attributes) -> None:
        """Set attributes whose names need not be Python identifiers."""
        self.attributes.update(attributes)

    def event(self, name: str) -> None:
        """Record an event of the span at the current time, unless the trace is closed."""
        if not self.trace.closed:
            self.events.append((time.monotonic(), name))

    def fail(self, error: BaseException) -> None:
        """Set the error of the span: its text, or else the name of its class."""
        self.error = str(error) or type(error).__name__

    def end(self) -> None:
        """Record the end of the span now, unless it is already recorded."""
        if not self.ended:
            self.ended = time.monotonic()

    @contextmanager
    def active(self) -> Iterator[Span]:
        """Make this the current span inside the context, without ending it."""
        token = _current.set(self)
        try:
            yield self
        finally:
            _current.reset(token)

    def __enter__(self) -> Span:
        self._token = _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None:
            _current.reset(self._token)
            self._token = None
        if error is not None and self.trace.failure != id(error):  # otherwise an inner span has recorded it
            self.trace.failure = id(error)
            self.fail(error)
        self.end()

    def walk(self) -> Iterator[Span]:
        """Yield this span and then all spans below it, depth first."""
        yield self
        for child in self.children:
            yield from child.walk()


class Nothing:
    """The type of `NOTHING`, which replaces a span that is not recorded. It is false, and its methods do nothing."""

    __slots__ = ()

    def __bool__(self) -> Literal[False]:
        return False

    def set(self, **attributes: Any) -> None: ...

    def put(self, attributes: Attributes) -> None: ...

    def event(self, name: str) -> None: ...

    def fail(self, error: BaseException) -> None: ...

    def __enter__(self) -> Nothing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


NOTHING: Final = Nothing()


def start(name: str, kind: int = INTERNAL, scope: str = COMPONENT) -> Span | Nothing:
    """Start a span below the current one and return it; NOTHING if the request is not traced.

    The caller ends the span, by using it as a context manager or by `end`.

    Args:
        name: the name of the span.
        kind: INTERNAL, SERVER or CLIENT.
        scope: the OpenTelemetry instrumentation scope.
    """
    span = _current.get()
    return NOTHING if span is None else span.child(name, kind, scope)


def current_span() -> Span | Nothing:
    """Return the current span, to record events in it; NOTHING if the request is not traced."""
    return _current.get() or NOTHING


def detail(name: str) -> Span | Nothing:
    """Start a span that upstream does not have and return it; NOTHING unless the request has a detailed trace."""
    span = _current.get()
    return span.child(name) if span is not None and span.trace.detailed else NOTHING


class traced:  # noqa: N801 - a decorator
    """A decorator of coroutine functions: each call in a traced request becomes a span.

    Decorated methods remain undecorated in their classes until `arm` is called, so that they cost nothing before the
    first trace.

    Args:
        name: the name of the span, or a function that returns it.
        attributes: returns the attributes of the span. Like `name` it is called with the arguments of the call.
        detailed: whether calls are recorded only in detailed traces. Other spans have the request's `audit-id`.
        events: names of two events of the span, at the begin and at the successful end of the call; "" for none.
        around: names of two events of the parent span, before and after the call.
    """

    def __init__(
        self,
        name: str | Callable[..., str],
        attributes: Callable[..., Attributes] | None = None,
        *,
        detailed: bool = False,
        events: tuple[str, str] = ("", ""),
        around: tuple[str, str] = ("", ""),
    ) -> None:
        self._name, self._attributes, self._detailed = name, attributes, detailed
        self._events, self._around = events, around

    def __call__(self, work: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
        name, attributes, detailed = self._name, self._attributes, self._detailed
        events, around = self._events, self._around

        async def in_span(span: Span, *args: P.args, **kwargs: P.kwargs) -> R:
            with marked(span, around), span.child(name if isinstance(name, str) else name(*args, **kwargs)) as step:
                if not detailed and "audit-id" in span.trace.request:
                    step.put({"audit-id": span.trace.request["audit-id"]})
                if attributes is not None:
                    step.put(attributes(*args, **kwargs))
                with marked(step, events):
                    return await work(*args, **kwargs)

        @functools.wraps(work)
        def call(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
            span = _current.get()
            if span is None or (detailed and not span.trace.detailed):
                return work(*args, **kwargs)
            return in_span(span, *args, **kwargs)

        owner = work.__qualname__.rpartition(".")[0]
        if not owner or owner.endswith("<locals>"):
            return call
        return cast(Callable[P, Coroutine[Any, Any, R]], _Method(work, call))


@contextmanager
def marked(span: Span | Nothing, names: tuple[str, str]) -> Iterator[None]:
    """Record the first event in `span` before the body, and the second after it unless it fails; "" for none."""
    before, after = names
    if before:
        span.event(before)
    yield
    if after:
        span.event(after)


class _Method:
    """A placeholder that `traced` puts into a class body in place of a decorated method.

    When the class is created, the placeholder replaces itself by the undecorated method, or by the decorated one after
    `arm`.

    Args:
        undecorated: the method.
        traced_: the method in the form that records a span.
    """

    def __init__(self, undecorated: Callable[..., Any], traced_: Callable[..., Any]) -> None:
        self._undecorated, self._traced = undecorated, traced_

    def __set_name__(self, owner: type, name: str) -> None:
        _methods.append((owner, name, self._traced))
        setattr(owner, name, self._traced if _armed else self._undecorated)


_methods: Final[list[tuple[type, str, Callable[..., Any]]]] = []
_armed = False


def arm() -> None:
    """Replace all methods that `traced` decorates by their decorated forms. Called when the first trace is requested.

    Further calls do nothing.
    """
    global _armed
    if not _armed:
        _armed = True
        for owner, name, method in _methods:
            setattr(owner, name, method)
