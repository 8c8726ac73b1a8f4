"""The time that a request of a client has spent in the store, decoding and serialization, for its audit event.

Requests to the store that fill a watch cache belong to no client's request.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/etcd3/latency_tracker.go and
pkg/endpoints/request/webhook_duration.go
"""

from __future__ import annotations

import time
from collections.abc import MutableMapping
from contextvars import Context, ContextVar, copy_context
from typing import Final

STORE: Final = "etcd"
DECODING: Final = "decode-response-object"
SERIALIZATION: Final = "serialize-response-object"
"""The names of the layers in upstream's annotations."""
_layers: ContextVar[MutableMapping[str, float] | None] = ContextVar("latency of layers", default=None)


class MeasuredStore:
    """A context manager that adds the seconds of all requests to the store within it to the member `etcd` of `layers`.

    Every `LayerTimer` within the context adds to `layers` too.
    """

    __slots__ = ("_layers", "_token")

    def __init__(self, layers: MutableMapping[str, float]) -> None:
        self._layers = layers

    def __enter__(self) -> None:
        self._token = _layers.set(self._layers)

    def __exit__(self, *_: object) -> None:
        _layers.reset(self._token)


def context_without_request() -> Context:
    """Return a copy of the current context in which requests to the store belong to no client's request.

    Background tasks that a client's request starts run in it, because they outlive that request.
    """
    context = copy_context()
    context.run(_layers.set, None)
    return context


class LayerTimer:
    """A context manager that adds its duration to a layer of the request in whose context it was created.

    It does nothing if that request is not audited. It may be entered after the handler of the request has returned.

    Args:
        layer: the name of the layer in upstream's annotations.
    """

    __slots__ = ("_began", "_layer", "_layers")

    def __init__(self, layer: str) -> None:
        self._layer = layer
        self._layers = _layers.get()

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, *_: object) -> None:
        if self._layers is not None:
            seconds = time.monotonic() - self._began
            self._layers[self._layer] = self._layers.get(self._layer, 0.0) + seconds


def add_store_latency(seconds: float) -> None:
    """Add the duration of a request to the store, in seconds, to the layer `etcd` of `MeasuredStore`.

    Do nothing outside of a `MeasuredStore`.
    """
    if (layers := _layers.get()) is not None:
        layers[STORE] = layers.get(STORE, 0.0) + seconds
