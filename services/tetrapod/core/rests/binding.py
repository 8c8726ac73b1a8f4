"""Assigning a pod to a node: `pods/binding` and the older `bindings` (upstream: BindingREST in core/pod/storage/storage.go)."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.rests.stores import PODS, Stores
from tetrapod.core.strategies.pod_features import drop_init_container_annotations
from tetrapod.core.validation.names import dns_subdomain
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.storage.interface import Preconditions
from tetrapod.machinery import field, status
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.timestamps import now_rfc3339

SUCCESS: Final[Object] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
_BINDING: Final = GroupResource("", "pods/binding")


class BindingRest(Rest):
    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def create(self, ctx: Context, name: str, obj: Object, validate: Any, options: Object) -> Object:
        meta = obj.setdefault("metadata", {})
        given = meta.get("name") or ""
        name = name or given
        if given != name:
            raise status.bad_request("name in URL does not match name in Binding object")
        target = obj.get("target") or {}
        errors = []
        if target.get("kind") not in ("", None, "Node"):
            errors.append(field.not_supported("target.kind", target["kind"], ["Node", "<empty>"]))
        if not target.get("name"):
            errors.append(field.required("target.name"))
        elif not errors:
            errors += dns_subdomain(target["name"], "target.name")
        if errors:  # upstream forgets to make a refusal of them
            texts = [str(error) for error in errors]
            raise status.StatusError(500, "", texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
        if validate is not None:
            await validate(obj)
        await self._assign(ctx, name, target["name"], obj)
        return dict(SUCCESS)

    async def _assign(self, ctx: Context, name: str, node: str, binding: Object) -> None:
        store = self._stores[PODS]

        async def assign(current: Object | None) -> Object:
            if current is None:
                raise status.not_found(PODS, name)
            spec = current.setdefault("spec", {})
            if current["metadata"].get("deletionTimestamp"):
                raise _conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
            if spec.get("nodeName"):
                raise _conflict(name, f"pod {name} is already assigned to node {field.go_quote(spec['nodeName'])}")
            if spec.get("schedulingGates"):
                raise _conflict(name, f"pod {name} has non-empty .spec.schedulingGates")
            spec["nodeName"] = node
            current.setdefault("status", {}).pop("nominatedNodeName", None)
            _merge(current["metadata"], "annotations", binding["metadata"].get("annotations"))
            _merge(current["metadata"], "labels", binding["metadata"].get("labels"))
            drop_init_container_annotations(current["metadata"])
            set_condition(current, {"type": "PodScheduled", "status": "True"})
            return current

        meta = binding["metadata"]
        wanted = Preconditions(meta.get("uid") or None, meta.get("resourceVersion") or None)
        await store.update(ctx, name, assign, strategy=_Unchecked(), preconditions=wanted)


class PodBindingRest(BindingRest):
    """Below the pod, where a binding's own uid and resourceVersion say which pod it means."""

    keeps_system_metadata = True


def _conflict(name: str, why: str) -> status.StatusError:
    return status.conflict(_BINDING, name, why)


class _Unchecked(Strategy):
    """Binding changes what a user may not change, and nobody looks at the labels it brings."""

    metadata_rules = "none"


def _merge(meta: Object, key: str, more: Object | None) -> None:
    if more:
        meta[key] = {**(meta.get(key) or {}), **more}


def set_condition(pod: Object, condition: Object) -> None:
    """In place of that of its type, whose time it keeps where the status stays (upstream: UpdatePodCondition)."""
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    for i, existing in enumerate(conditions):
        if existing.get("type") == condition["type"]:
            same = existing.get("status") == condition["status"]
            since = existing.get("lastTransitionTime") if same else now_rfc3339()
            conditions[i] = {"lastProbeTime": None, "lastTransitionTime": since, **condition}
            return
    conditions.append({"lastProbeTime": None, "lastTransitionTime": now_rfc3339(), **condition})
