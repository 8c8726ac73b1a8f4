"""The watch verb: one JSON line, protobuf message or CBOR item per event.

`watch_frames.py` encodes the events, and `watch_serving.py` sends them. A client that requests an upgrade to WebSocket
gets each event as an uncompressed message.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/get.go, watch.go
"""

from __future__ import annotations

import random

from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.endpoints.options import ListOptions
from tetrapod.generic.endpoints.scope import Scope
from tetrapod.generic.endpoints.sharded_watch import ShardedWatch, counted_predicate
from tetrapod.generic.endpoints.watch_frames import FRAMES, Frames
from tetrapod.generic.endpoints.watch_serving import WatchServing
from tetrapod.generic.http.gzip_encoding import HEADERS, accepts_gzip
from tetrapod.generic.http.negotiation.accept import (
    YAML,
    Accepted,
    watch_types,
)
from tetrapod.generic.http.request import Request, Response, StreamResponse
from tetrapod.generic.http.websocket import is_websocket_request
from tetrapod.generic.http.websocket_stream import serve_messages, watch_handshake
from tetrapod.generic.registry.predicate import Selection
from tetrapod.generic.storage.queries import WatchQuery
from tetrapod.generic.storage.watch import Watch
from tetrapod.machinery.status import method_not_supported, not_acceptable


async def watch(
    scope: Scope, request: Request, options: ListOptions, selection: Selection, accepted: Accepted
) -> Response:
    """Open a watch and return the response that streams its events.

    Args:
        selection: the objects to watch, from the selectors and the path.

    Raises:
        StatusError: the resource has no watch (405), YAML is requested (406), `includeObject` of a Table is invalid
            (400), or the resource version is malformed (500) or was not reached in time (504).
    """
    if scope.rest is not None or "watch" not in scope.definition.verbs:
        raise method_not_supported(scope.definition.group_resource, "watch")
    frames = FRAMES.get(accepted.media_type, Frames)(scope, accepted)
    query = WatchQuery(
        prefix=selection.prefix,
        predicate=counted_predicate(selection.predicate, scope.definition.group_resource),
        resource_version=options.resource_version,
        match=options.resource_version_match,
        bookmarks=options.allow_watch_bookmarks,
        initial_events=options.send_initial_events,
        single=selection.single,
    )
    seconds = float(options.timeout_seconds or 0) or request.min_watch_seconds * (random.random() + 1.0)
    source = await scope.store.watch(scope.context(request), query)
    if accepted.media_type == YAML:  # upstream negotiates after it has opened the watch
        source.close()
        raise not_acceptable(f"only the following media types are accepted: {', '.join(watch_types())}")
    if selection.shard is not None:
        source = ShardedWatch(source, scope.definition.group_resource)
    if request.upgrade is not None and is_websocket_request(request.headers):
        return _over_websocket(source, frames, seconds, request, bookmarks=query.bookmarks)
    compressible = bool(query.initial_events and query.bookmarks) and feature_gates.enabled("WatchListCompression")
    gzip = compressible and accepts_gzip(request)
    headers = [*frames.headers(), *HEADERS] if gzip else frames.headers()
    serving = WatchServing(source, frames, seconds, request, gzip=gzip, bookmarks=query.bookmarks)
    return StreamResponse(200, headers, serving.run, endless=True)


def _over_websocket(source: Watch, frames: Frames, seconds: float, request: Request, *, bookmarks: bool) -> Response:
    """Return the response that sends the events of `source` as WebSocket messages, or the rejection of the handshake.

    Args:
        source: the watch, which is closed if the handshake is rejected.
        frames: encodes its events.
        seconds: the timeout of the watch.
        request: the request of the client.
        bookmarks: whether the client allows bookmarks, and so gets one before the timeout.

    Upstream: WatchServer.HandleWS
    """
    handshake = watch_handshake(request)
    if isinstance(handshake, Response):
        source.close()
        return handshake
    serving = WatchServing(source, frames, seconds, request, gzip=False, bookmarks=bookmarks, separate=True)
    return serve_messages(handshake, serving.run, frames.message)
