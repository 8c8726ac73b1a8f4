"""The time that a request of a client has waited for the store, for its audit event.

Requests to the store that fill a watch cache belong to no client's request.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/etcd3/latency_tracker.go
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Final

STORE: Final = "etcd"
"""The name of the layer in upstream's annotations."""
_layers: ContextVar[MutableMapping[str, float] | None] = ContextVar("latency of layers", default=None)


@contextmanager
def measured_store(layers: MutableMapping[str, float]) -> Iterator[None]:
    """Add the seconds of all requests to the store within the context to the member `etcd` of `layers`."""
    token = _layers.set(layers)
    try:
        yield
    finally:
        _layers.reset(token)


def context_without_request() -> Context:
    """Return a copy of the current context in which requests to the store belong to no client's request.

    Background tasks that a client's request starts run in it, because they outlive that request.
    """
    context = copy_context()
    context.run(_layers.set, None)
    return context


def add_store_latency(seconds: float) -> None:
    """Record a request to the store. Do nothing outside of `measured_store`."""
    if (layers := _layers.get()) is not None:
        layers[STORE] = layers.get(STORE, 0.0) + seconds
