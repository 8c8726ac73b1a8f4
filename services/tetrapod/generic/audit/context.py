"""`AuditContext`, the collected data about one request with the event of each of its stages, and `Audit`.

Endpoints access it as `Request.audit`.
Upstream: k8s.io/apiserver/pkg/audit/context.go, request.go
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

import orjson

from tetrapod.generic.admission.interface import DETAILED_ANNOTATIONS
from tetrapod.generic.audit.backend import Backend
from tetrapod.generic.audit.event import Event, micro_time, wall_clock
from tetrapod.generic.audit.metrics import EVENT_TOTAL, LEVEL_TOTAL
from tetrapod.generic.audit.objects import compact_json, encoded, is_costly, may_be_status, response_object, status_in
from tetrapod.generic.audit.policy import (
    LEVEL_NAMES,
    REQUEST_RECEIVED,
    RESPONSE_COMPLETE,
    RESPONSE_STARTED,
    Auditing,
    Level,
    Policy,
)
from tetrapod.generic.audit.request_fields import head_of, identity_of, origin_of, reference_of, user_info
from tetrapod.generic.http.negotiation.documents import takes_status
from tetrapod.generic.http.peers import AUDIT_OMIT_MANAGED_FIELDS
from tetrapod.generic.http.request import ForwardingWriter, Request, Response, StreamResponse, StreamWriter
from tetrapod.generic.scheduling.offload import LARGE, in_thread, offloaded, to_the_end
from tetrapod.generic.storage.latency import STORE, MeasuredStore
from tetrapod.machinery.golang.durations import format_duration
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.user import UserInfo

_SLOW: Final = 0.5
"""Seconds from which on the event of a request includes its latency by layer."""
_AT_THE_END: Final = frozenset({"k8s.io/deprecated", "k8s.io/removed-release"})
"""Annotations that upstream adds when the request ends (endpoints/metrics/metrics.go, MonitorRequest)."""


DECIDED_KEY: Final = "audit policy was asked"
"""The key in `Request.state` that is set once the policy has been evaluated."""


class AuditContext:
    """The audit data of one request, which becomes an event at each stage.

    Args:
        request: the request.
        auditing: the decision of the policy.
        sink: the destination of events. It is None on a peer service (core, extensions or auth as a separate process):
            the aggregator gets the data by `peer_data` and writes the events.
        user: the authenticated user, or None if authentication failed.

    Attributes:
        level: the level of `auditing`.
        status: the event's responseStatus; None before a response is recorded.
    """

    __slots__ = (
        "_error_status",
        "_from",
        "_head",
        "_layers",
        "_received",
        "_reference",
        "_request_object",
        "_response_object",
        "auditing",
        "level",
        "request",
        "sink",
        "status",
    )

    def __init__(self, request: Request, auditing: Auditing, sink: Backend | None, user: UserInfo | None) -> None:
        self.request = request
        self.auditing = auditing
        self.level = auditing.level
        self.sink = sink
        self.status: Object | None = None
        self._head: Object = {}
        self._from: Object = {}
        if sink is not None:
            self._head, self._from = head_of(request, user), origin_of(request)
            self._received = micro_time(wall_clock(request.received))
        self._reference = reference_of(request.info)
        self._error_status: Object | None = None
        self._layers: dict[str, float] = {}
        self._request_object: bytes = b""
        self._response_object: bytes = b""

    # --- called by endpoints

    def request_object(
        self, obj: Object, resource: GroupVersionResource, subresource: str, in_thread: bool = False
    ) -> None:
        """Record the decoded object of the request, before anything changes it.

        Its name, namespace and uid complete the event's objectRef. The object itself is recorded from the level Request
        on.

        Args:
            obj: the object.
            resource: its resource.
            subresource: its subresource; "" for the resource itself.
            in_thread: whether this is called in a worker thread; the object is then encoded in steps between which
                other threads can run.
        """
        metadata = obj.get("metadata")
        reference = self._reference = self._reference or {}
        for key, value in identity_of(metadata if isinstance(metadata, dict) else {}, resource, subresource):
            if value and not reference.get(key):
                reference[key] = value
        if self.level >= Level.REQUEST:
            omits = self.auditing.omit_managed_fields
            self._request_object = encoded(obj, omit_managed_fields=omits, in_thread=in_thread)

    def request_patch(self, patch: bytes | Object) -> None:
        """Record a patch, from the level Request on: the JSON of the body, or the object that a YAML body contains."""
        if self.level >= Level.REQUEST:
            self._request_object = (
                compact_json(patch) if isinstance(patch, bytes) else encoded(patch, omit_managed_fields=False)
            )

    def record_status(self, status: Object) -> None:
        """Record a Status object that is the response.

        As upstream, only its code is recorded if the client accepts none of the media types of a Status.
        """
        if not takes_status(self.request):
            self.code(status["code"])
            return
        self._error_status = status
        self.status = _bounded(status)
        if self.level >= Level.REQUEST_RESPONSE:
            self._response_object = encoded(status, omit_managed_fields=False)

    async def record_response(self, response: Response) -> None:
        """Record the status and, at the level RequestResponse, the object of a response (JSON, YAML or protobuf).

        The body of a streamed response is copied while it is written; `response.run` is replaced for that.
        """
        if not isinstance(response, StreamResponse):
            await self._keep(response, response.body)
        elif not response.endless and (self.level >= Level.REQUEST_RESPONSE or may_be_status(response)):
            self._collect(response)

    def _collect(self, response: StreamResponse) -> None:
        inner = response.run

        async def run(writer: StreamWriter) -> None:
            copying = _Copying(writer)
            await inner(copying)
            await to_the_end(self._keep(response, b"".join(copying.pieces)))

        response.run = run

    async def _keep(self, response: Response, body: bytes) -> None:
        if (status := status_in(response, body)) is not None:
            self.status = {**(self.status or {}), **_bounded(status)}
        if self.level >= Level.REQUEST_RESPONSE and body:
            self._response_object = await offloaded(
                is_costly(response, body),
                response_object,
                response,
                body,
                omit_managed_fields=self.auditing.omit_managed_fields,
            )

    @property
    def large(self) -> bool:
        """Whether the recorded objects are so large that they are encoded in a thread."""
        return len(self._request_object) + len(self._response_object) >= LARGE

    # --- stages

    async def stage(self, stage: str) -> bool:
        """Pass the event of a stage to the backend, unless the policy omits the stage.

        Return False if the backend failed, else True.
        """
        if self.sink is None or stage in self.auditing.omit_stages:
            return True
        EVENT_TOTAL.add()
        event = Event(self._document(stage))
        if self.large:
            return await to_the_end(self._process_large(event))
        return await self.sink.process((event,))

    async def complete(self) -> None:
        """Pass the event of the last stage to the backend, and detach this context from its request.

        The two refer to each other. The cycle would have to wait for the garbage collector.
        """
        self.annotate_latency()
        await self.stage(RESPONSE_COMPLETE)
        self.request.audit = None

    async def _process_large(self, event: Event) -> bool:
        assert self.sink is not None
        await in_thread(event.item)  # the backends get the encoded event
        return await self.sink.process((event,))

    def _document(self, stage: str) -> Object:
        """Return the event of a stage without kind and apiVersion, with its fields in upstream's order."""
        head, request = self._head, self.request
        document: Object = {"level": LEVEL_NAMES[self.level], "auditID": request.audit_id, "stage": stage, **head}
        if "impersonator" in request.state:
            document["impersonatedUser"] = user_info(request.user)
            if constraint := request.state.get("impersonation_constraint"):
                document["authenticationMetadata"] = {"impersonationConstraint": constraint}
        document |= self._from
        if self._reference:
            document["objectRef"] = {key: value for key, value in self._reference.items() if value}
        if self.status is not None:
            document["responseStatus"] = self.status
        if self._request_object:
            document["requestObject"] = orjson.Fragment(self._request_object)
        if self._response_object:
            document["responseObject"] = orjson.Fragment(self._response_object)
        received = document["requestReceivedTimestamp"] = self._received
        document["stageTimestamp"] = received if stage == REQUEST_RECEIVED else micro_time(time.time())
        annotations = self.annotations()
        if stage == RESPONSE_STARTED:
            annotations = {key: value for key, value in annotations.items() if key not in _AT_THE_END}
        if annotations:
            document["annotations"] = annotations
        return document

    def annotations(self) -> dict[str, str]:
        """Return the annotations of the event by key, sorted.

        Those of level Request are included only from that level on.
        """
        annotations = self.request.annotations
        if self.level >= Level.REQUEST and (detailed := self.request.state.get(DETAILED_ANNOTATIONS)):
            annotations = {**detailed, **annotations}
        return dict(sorted(annotations.items()))

    def add_latency(self, layer: str, began: float, *, at_once: bool = False) -> None:
        """Add the time since `began` to the latency of a layer.

        Args:
            layer: the name of the layer in upstream's annotations ("authentication", "mutating-webhook", …).
            began: a time of time.monotonic().
            at_once: keep the maximum instead of the sum, for parts that run at the same time.
        """
        layers, seconds = self._layers, time.monotonic() - began
        recorded = layers.get(layer, 0.0)
        layers[layer] = max(recorded, seconds) if at_once else recorded + seconds

    def measured_store(self) -> MeasuredStore:
        """Return a context manager that adds the durations of requests to the store in its body to the layer `etcd`."""
        return MeasuredStore(self._layers)

    def code(self, code: int) -> None:
        """Record the HTTP status code, once it has been sent."""
        self.status = {**(self.status or {"metadata": {}}), "code": code}

    def annotate_latency(self) -> None:
        """Annotate a request that took more than 0.5 seconds with the latency of each layer.

        Watches are long-running and not annotated.
        """
        seconds, info = time.monotonic() - self.request.received, self.request.info
        if seconds <= _SLOW or not self._layers or (info is not None and info.verb == "watch"):
            return
        for name, duration in (*self._layers.items(), ("total", seconds)):
            self.request.annotations.setdefault(f"apiserver.latency.k8s.io/{name}", format_duration(duration))

    # --- between servers

    def requested_level(self) -> str:
        """Return the value of the request header by which the aggregator requests audit data from a peer service.

        It is the audit level, followed by a suffix if managed fields are to be omitted. The level is at most Request,
        because the aggregator sees the response itself.
        """
        return LEVEL_NAMES[min(self.level, Level.REQUEST)] + (
            AUDIT_OMIT_MANAGED_FIELDS if self.auditing.omit_managed_fields else ""
        )

    def peer_data(self) -> Object:
        """Return the audit data that only this process has, for the aggregator's `add_peer_data`.

        orjson can encode the result. The request object is an `orjson.Fragment`, and other values are not copies.
        Call it on a peer service: the aggregator writes the audit events of requests that it proxies there.
        """
        data: Object = {"annotations": self.request.annotations, "objectRef": self._reference, "layers": self._layers}
        if detailed := self.request.state.get(DETAILED_ANNOTATIONS):
            data["detailed"] = detailed
        if self._error_status is not None:
            data["refusal"] = self._error_status
        if self._request_object:
            data["requestObject"] = orjson.Fragment(self._request_object)
        return data

    def add_peer_data(self, data: Object) -> None:
        """Add the audit data that a peer service collected for this request, when the aggregator has proxied it there.

        These are annotations, objectRef, latencies, the Status of a rejection and the request object. Both servers send
        requests to the store, so their latencies of that layer are added. For every other layer the latency that this
        server measured is kept. That of the peer service is used only if this server has none.

        Args:
            data: the result of `peer_data` in the process of the peer service, decoded from a response header.
        """
        request = self.request
        for key, value in (data.get("annotations") or {}).items():
            request.annotations.setdefault(key, value)
        if detailed := data.get("detailed"):
            request.state[DETAILED_ANNOTATIONS] = detailed
        if data.get("objectRef"):
            self._reference = data["objectRef"]
        layers = self._layers  # changed in place, because `measured_store` adds to it
        for layer, seconds in (data.get("layers") or {}).items():
            layers[layer] = layers.get(layer, 0.0) + seconds if layer == STORE else layers.get(layer, seconds)
        if "refusal" in data:
            self.record_status(data["refusal"])
        if "requestObject" in data:
            self._request_object = orjson.dumps(data["requestObject"])


_STATUS: Final = ("status", "message", "reason", "details", "code")


def _bounded(status: Object) -> Object:
    """Return a responseStatus with status, message, reason, details and code of a Status, and empty metadata."""
    return {"metadata": {}, **{key: status[key] for key in _STATUS if key in status}}


class _Copying(ForwardingWriter):
    """A StreamWriter that keeps a copy, in `pieces`, of everything written."""

    def __init__(self, writer: StreamWriter) -> None:
        super().__init__(writer)
        self.pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.pieces.append(data)
        self._writer.write(data)


@dataclass(frozen=True, slots=True)
class Audit:
    """The audit policy of a server, and the backend to which it passes its events."""

    policy: Policy
    backend: Backend

    def context(self, request: Request, user: UserInfo | None) -> AuditContext | None:
        """Evaluate the policy; return the audit context of the request, or None if its level is None.

        The result is also None for a request without request info.

        Args:
            user: the authenticated user, or None if authentication failed.
        """
        request.state[DECIDED_KEY] = True
        if request.info is None:
            return None
        auditing = self.policy.evaluate(user, request.info)
        LEVEL_TOTAL.add((LEVEL_NAMES[auditing.level],))
        if auditing.level is Level.NONE:
            return None
        return AuditContext(request, auditing, self.backend, user)
