"""Names webhooks of admission that would keep the control plane from working, or themselves from coming back, if they were away.

Not upstream's, where such a webhook is found out when it is too late. Nothing is refused: an event at the configuration and a line in the
log say what to change. `--break-glass` is the way out afterwards.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from tetrapod.generic.admission.interface import Attributes
from tetrapod.generic.admission.matching import Rule
from tetrapod.generic.client.events import EventRecorder
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.generic.user import UserInfo
from tetrapod.machinery import labels
from tetrapod.machinery.gvk import GroupVersionKind, GroupVersionResource, Object

log = logging.getLogger(__name__)

_GROUP: Final = "admissionregistration.k8s.io"
CONFIGURATIONS: Final = tuple(GroupVersionResource(_GROUP, "v1", f"{kind}webhookconfigurations") for kind in ("mutating", "validating"))
_ADVICE: Final = "leave that out, or set failurePolicy to Ignore"
Labels = Callable[[str], Mapping[str, str]]
"""Of a namespace."""


class Vital(NamedTuple):
    """A write that must not depend on a webhook."""

    operation: str
    resource: GroupVersionResource
    kind: str
    namespace: str
    why: str


_EVERYWHERE: Final = (
    Vital("UPDATE", GroupVersionResource("coordination.k8s.io", "v1", "leases"), "Lease", "kube-system", "leader election stops"),
    Vital("UPDATE", GroupVersionResource("coordination.k8s.io", "v1", "leases"), "Lease", "kube-node-lease", "nodes seem to be dead"),
    Vital("UPDATE", GroupVersionResource("", "v1", "nodes"), "Node", "", "nodes cannot report"),
    Vital("CREATE", GroupVersionResource("authentication.k8s.io", "v1", "tokenreviews"), "TokenReview", "", "nobody is let in by token"),
    Vital(
        "CREATE",
        GroupVersionResource("authorization.k8s.io", "v1", "subjectaccessreviews"),
        "SubjectAccessReview",
        "",
        "nobody is allowed anything by extension API servers",
    ),
)


def _of_service(namespace: str) -> tuple[Vital, ...]:
    why = "its own server cannot be started again"
    return (
        Vital("CREATE", GroupVersionResource("", "v1", "pods"), "Pod", namespace, why),
        Vital("CREATE", GroupVersionResource("discovery.k8s.io", "v1", "endpointslices"), "EndpointSlice", namespace, why),
    )


def hazards(webhook: Object, labels_of: Labels) -> list[str]:
    """What stops if a webhook is away; a webhook that looks at objects or conditions first is believed to know what it does."""
    if webhook.get("failurePolicy", "Fail") != "Fail" or webhook.get("matchConditions") or webhook.get("objectSelector"):
        return []
    service = (webhook.get("clientConfig") or {}).get("service") or {}
    vital = _EVERYWHERE + (_of_service(service["namespace"]) if service.get("namespace") else ())
    rules = [Rule.of(rule) for rule in webhook.get("rules") or ()]
    where = labels.from_label_selector(webhook.get("namespaceSelector") or {})
    found = []
    for write in vital:
        if any(rule.matches(_attributes(write), write.resource) for rule in rules) and (
            not write.namespace or where.matches(labels_of(write.namespace))
        ):
            place = f" in {write.namespace}" if write.namespace else ""
            found.append(f"{write.resource.group_resource}{place} ({write.why})")
    return found


def _attributes(write: Vital) -> Attributes:
    kind = GroupVersionKind(write.resource.group, write.resource.version, write.kind)
    nobody = UserInfo("")
    return Attributes(write.operation, kind, write.resource, "", write.namespace, "", None, None, {}, False, nobody)


class WebhookHazards:
    name = "webhook-hazards"

    def __init__(self, client: Client, namespaces: Informer) -> None:
        self._namespaces = namespaces
        self._events = EventRecorder(client, self.name)
        self._informers = {gvr: Informer(client, gvr) for gvr in CONFIGURATIONS}
        self._queue: WorkQueue[tuple[GroupVersionResource, str]] = WorkQueue(self.name, self._sync)
        self._told: dict[tuple[str, str], str] = {}  # by uid and webhook
        for gvr, informer in self._informers.items():
            informer.handlers.append(self._handler(gvr))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            await self._namespaces.synced.wait()
            for informer in self._informers.values():
                group.create_task(informer.run())
            group.create_task(self._queue.run())

    def _handler(self, gvr: GroupVersionResource) -> Callable[[Object | None, Object | None], None]:
        def changed(old: Object | None, new: Object | None) -> None:
            if new is not None:
                self._queue.add((gvr, new["metadata"]["name"]))

        return changed

    async def _sync(self, key: tuple[GroupVersionResource, str]) -> None:
        gvr, name = key
        configuration = self._informers[gvr].get("", name)
        if configuration is None:
            return
        for webhook in configuration.get("webhooks") or ():
            place = (configuration["metadata"]["uid"], webhook["name"])
            what = ", ".join(hazards(webhook, self._labels))
            if what == self._told.get(place, ""):
                continue
            self._told[place] = what
            if what:
                note = f'webhook "{webhook["name"]}" is asked about {what}, and refuses if it is away: {_ADVICE}'
                log.warning("%s %s: %s", configuration.get("kind") or gvr.resource, name, note)
                about = {"apiVersion": f"{_GROUP}/v1", "kind": configuration.get("kind"), **configuration}
                await self._events.warn(about, "WebhookMayDeadlock", "Checking", note[:1024])

    def _labels(self, namespace: str) -> Mapping[str, str]:
        found = self._namespaces.get("", namespace)
        own = {"kubernetes.io/metadata.name": namespace}
        return own if found is None else {**own, **(found["metadata"].get("labels") or {})}
