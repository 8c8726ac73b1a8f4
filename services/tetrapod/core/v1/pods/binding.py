"""`pods/binding` and the older `bindings`, which assign a pod to a node.

Upstream: pkg/registry/core/pod/storage/storage.go, BindingREST.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.podspec.features import drop_init_container_annotations
from tetrapod.core.subresources.stores import PODS, Stores
from tetrapod.core.validation.names import dns_subdomain
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.storage.writes import Preconditions
from tetrapod.machinery import field, status
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.timestamps import now_rfc3339

SUCCESS: Final[Object] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
_BINDING: Final = GroupResource("", "pods/binding")


class BindingRest(Rest):
    """The resource `bindings`: creating a Binding assigns the pod with its name to a node.

    Success is a Status with code 201.

    Args:
        stores: the stores by resource, among them that of pods.
    """

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def create(self, ctx: Context, name: str, obj: Object, validate: Any, options: Object) -> Object:
        meta = obj.setdefault("metadata", {})
        binding_name = meta.get("name") or ""
        name = name or binding_name
        if binding_name != name:
            raise status.bad_request("name in URL does not match name in Binding object")
        target = obj.get("target") or {}
        errors = []
        if target.get("kind") not in ("", None, "Node"):
            errors.append(field.not_supported("target.kind", target["kind"], ["Node", "<empty>"], typed=False))
        if not target.get("name"):
            errors.append(field.required("target.name"))
        elif not errors:
            errors += dns_subdomain(target["name"], "target.name")
        if errors:  # upstream returns these errors without a status, hence code 500
            raise status.StatusError(500, "", aggregate_errors(errors))
        if validate is not None:
            await validate(obj)
        await self._assign(ctx, name, target["name"], obj)
        return dict(SUCCESS)

    async def _assign(self, ctx: Context, name: str, node: str, binding: Object) -> None:
        """Set spec.nodeName of the pod, merge the binding's labels and annotations, and set its condition PodScheduled.

        uid and resourceVersion of the binding, if set, are preconditions on the pod.

        Args:
            name: the pod's name.
            node: the node's name. The node need not exist.

        Raises:
            StatusError: 404, the pod does not exist; 409, it is being deleted, has a node or scheduling gates, or a
                precondition does not hold.
        """
        store = self._stores[PODS]

        async def assign(current: Object | None) -> Object:
            if current is None:
                raise status.not_found(PODS, name)
            spec = current.setdefault("spec", {})
            if current["metadata"].get("deletionTimestamp"):
                raise _conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
            if spec.get("nodeName"):
                raise _conflict(name, f"pod {name} is already assigned to node {go_quote(spec['nodeName'])}")
            if spec.get("schedulingGates"):
                raise _conflict(name, f"pod {name} has non-empty .spec.schedulingGates")
            spec["nodeName"] = node
            if feature_gates.enabled("ClearingNominatedNodeNameAfterBinding"):
                current.setdefault("status", {}).pop("nominatedNodeName", None)
            _merge(current["metadata"], "annotations", binding["metadata"].get("annotations"))
            if feature_gates.enabled("PodTopologyLabelsAdmission"):
                _merge(current["metadata"], "labels", binding["metadata"].get("labels"))
            drop_init_container_annotations(current["metadata"])
            set_condition(current, {"type": "PodScheduled", "status": "True"})
            return current

        meta = binding["metadata"]
        preconditions = Preconditions(meta.get("uid") or None, meta.get("resourceVersion") or None)
        await store.update(ctx, name, assign, strategy=_Unchecked(), preconditions=preconditions)


class PodBindingRest(BindingRest):
    """The subresource `pods/binding`. Unlike `bindings`, it keeps the uid and resourceVersion that the client sends.

    They are preconditions on the pod.
    """

    keeps_system_metadata = True


def _conflict(name: str, why: str) -> status.StatusError:
    return status.conflict(_BINDING, name, why)


class _Unchecked(Strategy):
    """The strategy with which the server writes the pod of a binding: without validation.

    A binding changes immutable fields, and upstream does not validate the labels that it adds.
    """

    metadata_rules = "none"


def _merge(meta: Object, key: str, more: Object | None) -> None:
    if more:
        meta[key] = {**(meta.get(key) or {}), **more}


def set_condition(pod: Object, condition: Object) -> None:
    """Replace the pod's condition of the same type, or append it, in place.

    lastTransitionTime is kept if the status of the condition has not changed, else it is the current time.

    Upstream: UpdatePodCondition
    """
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    for i, existing in enumerate(conditions):
        if existing.get("type") == condition["type"]:
            unchanged = existing.get("status") == condition["status"]
            transition_time = existing.get("lastTransitionTime") if unchanged else now_rfc3339()
            conditions[i] = {"lastProbeTime": None, "lastTransitionTime": transition_time, **condition}
            return
    conditions.append({"lastProbeTime": None, "lastTransitionTime": now_rfc3339(), **condition})
