"""The controller that warns about admission webhooks that can break the cluster while they are unavailable.

Such a webhook would then reject writes of the control plane, or those that start its own server again.

Upstream has nothing like it: there such a webhook is noticed only when it fails. Nothing is rejected. An event for the
configuration and a log line say what to change. `--break-glass` is the way to recover afterwards.
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
from tetrapod.machinery import labels
from tetrapod.machinery.gvk import GroupVersionKind, GroupVersionResource, Object
from tetrapod.machinery.user import UserInfo

log = logging.getLogger(__name__)

_GROUP: Final = "admissionregistration.k8s.io"
CONFIGURATIONS: Final = tuple(
    GroupVersionResource(_GROUP, "v1", f"{kind}webhookconfigurations") for kind in ("mutating", "validating")
)
_ADVICE: Final = "they fail while it is unavailable: exclude them, or set failurePolicy to Ignore"
Labels = Callable[[str], Mapping[str, str]]
"""Returns the labels of a namespace."""


class CriticalWrite(NamedTuple):
    """A write without which the cluster or a webhook's server does not work.

    Attributes:
        operation: "CREATE" or "UPDATE".
        resource: the written resource.
        kind: its kind.
        namespace: its namespace, or "" for cluster-scoped resources.
        why: the consequence of rejecting the write, for the warning.
    """

    operation: str
    resource: GroupVersionResource
    kind: str
    namespace: str
    why: str


_EVERYWHERE: Final = (
    CriticalWrite(
        "UPDATE",
        GroupVersionResource("coordination.k8s.io", "v1", "leases"),
        "Lease",
        "kube-system",
        "leader election stops",
    ),
    CriticalWrite(
        "UPDATE",
        GroupVersionResource("coordination.k8s.io", "v1", "leases"),
        "Lease",
        "kube-node-lease",
        "nodes become NotReady",
    ),
    CriticalWrite(
        "UPDATE",
        GroupVersionResource("", "v1", "nodes"),
        "Node",
        "",
        "kubelets cannot report the status of their nodes",
    ),
    CriticalWrite(
        "CREATE",
        GroupVersionResource("authentication.k8s.io", "v1", "tokenreviews"),
        "TokenReview",
        "",
        "bearer tokens are not authenticated",
    ),
    CriticalWrite(
        "CREATE",
        GroupVersionResource("authorization.k8s.io", "v1", "subjectaccessreviews"),
        "SubjectAccessReview",
        "",
        "extension API servers reject all requests",
    ),
)


def _of_service(namespace: str) -> tuple[CriticalWrite, ...]:
    """Return the writes that are needed to start the server of a webhook whose Service is in this namespace."""
    reason = "its own server cannot be started again"
    return (
        CriticalWrite("CREATE", GroupVersionResource("", "v1", "pods"), "Pod", namespace, reason),
        CriticalWrite(
            "CREATE",
            GroupVersionResource("discovery.k8s.io", "v1", "endpointslices"),
            "EndpointSlice",
            namespace,
            reason,
        ),
    )


def hazards(webhook: Object, labels_of: Labels) -> list[str]:
    """Return descriptions of the critical writes that fail while the webhook is unavailable.

    The result is [] for a webhook with failurePolicy Ignore, because no write fails then. It is also [] for a webhook
    with an objectSelector or matchConditions, which is not analyzed but assumed to be safe.

    Args:
        webhook: an element of `webhooks` in a webhook configuration.
        labels_of: returns the labels of the namespace with this name, also if it does not exist.
    """
    if (
        webhook.get("failurePolicy", "Fail") != "Fail"
        or webhook.get("matchConditions")
        or webhook.get("objectSelector")
    ):
        return []
    service = (webhook.get("clientConfig") or {}).get("service") or {}
    writes = _EVERYWHERE + (_of_service(service["namespace"]) if service.get("namespace") else ())
    rules = [Rule.from_object(rule) for rule in webhook.get("rules") or ()]
    namespace_selector = labels.from_label_selector(webhook.get("namespaceSelector") or {})
    descriptions = []
    for write in writes:
        if any(rule.matches(_attributes(write), write.resource) for rule in rules) and (
            not write.namespace or namespace_selector.matches(labels_of(write.namespace))
        ):
            location = f" in {write.namespace}" if write.namespace else ""
            descriptions.append(f"{write.resource.group_resource}{location} ({write.why})")
    return descriptions


def _attributes(write: CriticalWrite) -> Attributes:
    """Return admission attributes of the write, to match them with a webhook's rules."""
    kind = GroupVersionKind(write.resource.group, write.resource.version, write.kind)
    user = UserInfo("")
    return Attributes(write.operation, kind, write.resource, "", write.namespace, "", None, None, {}, False, user)


class WebhookHazards:
    """The controller that reports hazards of webhook configurations by log lines and events.

    It reports the hazards of a webhook again only if they change.

    Args:
        namespaces: an informer of all Namespaces that other controllers use too; the caller runs it.
    """

    name = "webhook-hazards"

    def __init__(self, client: Client, namespaces: Informer) -> None:
        self._namespaces = namespaces
        self._events = EventRecorder(client, self.name)
        self._informers = {gvr: Informer(client, gvr) for gvr in CONFIGURATIONS}
        self._queue: WorkQueue[tuple[GroupVersionResource, str]] = WorkQueue(self.name, self._sync)
        self._reported: dict[tuple[str, str], str] = {}  # last reported hazards by (uid of the configuration, webhook)
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
            webhook_key = (configuration["metadata"]["uid"], webhook["name"])
            affected = ", ".join(hazards(webhook, self._labels))
            if affected == self._reported.get(webhook_key, ""):
                continue
            self._reported[webhook_key] = affected
            if affected:
                message = f'webhook "{webhook["name"]}" receives writes of {affected}; {_ADVICE}'
                log.warning("%s %s: %s", configuration.get("kind") or gvr.resource, name, message)
                reference = {"apiVersion": f"{_GROUP}/v1", "kind": configuration.get("kind"), **configuration}
                await self._events.record_warning(reference, "WebhookMayDeadlock", "Checking", message[:1024])

    def _labels(self, namespace: str) -> Mapping[str, str]:
        stored = self._namespaces.get("", namespace)
        name_label = {"kubernetes.io/metadata.name": namespace}
        return name_label if stored is None else {**name_label, **(stored["metadata"].get("labels") or {})}
