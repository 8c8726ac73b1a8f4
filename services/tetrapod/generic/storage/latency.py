"""The time that a request of a client has waited for the store, for its audit event.

Requests to the store that fill a watch cache belong to no client's request.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/etcd3/latency_tracker.go
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
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


def add_store_latency(seconds: float) -> None:
    """Record a request to the store. Do nothing outside of `measured_store`."""
    if (layers := _layers.get()) is not None:
        layers[STORE] = layers.get(STORE, 0.0) + seconds
