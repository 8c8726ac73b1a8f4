"""`pods/eviction`: deletion that disruption budgets may refuse (upstream: pkg/registry/core/pod/storage/eviction.go)."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from tetrapod.core.rests.binding import SUCCESS, set_condition
from tetrapod.core.rests.stores import BUDGETS, PODS, Stores
from tetrapod.generic.client.interface import Client
from tetrapod.generic.endpoints.options import validate_delete_options
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.store import Store
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.storage.interface import ListQuery
from tetrapod.machinery import field, labels, status
from tetrapod.machinery.gvk import GroupKind, GroupResource, GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import now_rfc3339

_REFUSED: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL: Final = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_MAX_DISRUPTED: Final = 2000
_BUDGETS: Final = GroupVersionResource("policy", "v1", "poddisruptionbudgets")
_KIND: Final = GroupKind("policy", "Eviction")
_RECORD: Final = GroupResource("", "Pod")
_EVICTED: Final[Object] = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_ATTEMPTS: Final = 20
_BACKOFF: Final = 0.01


class EvictionRest(Rest):
    """`client` is the server's own: the budget's status shows that it was the server who wrote."""

    also_accepts = frozenset({"policy/v1beta1"})

    def __init__(self, stores: Stores, client: Client) -> None:
        self._stores = stores
        self._client = client

    async def create(self, ctx: Context, name: str, obj: Object, validate: Any, options: Object) -> Object:
        if ((obj.get("metadata") or {}).get("name") or "") != name:
            raise status.bad_request("name in URL does not match name in Eviction object")
        wanted = _delete_options(obj, name, options)
        if validate is not None:
            await validate(obj)
        dry_run = bool(wanted.get("dryRun"))
        inner = Context(ctx.user, ctx.namespace, ctx.version, "", dry_run, ctx.warnings, ctx.annotations)
        store = self._stores[PODS]
        pod = (await store.get(inner, name)).peek()
        if not _ignores_budgets(pod):
            budget = await self._budget_of(ctx.namespace, pod)
            if budget is not None and not (_ready(pod) is False and _evicts_unhealthy(budget)):
                await self._use(inner, budget, name)
        if not dry_run:
            await self._mark(inner, store, name, wanted)
        validate_delete_options(wanted)
        await store.delete(inner, name, wanted, None)
        return dict(SUCCESS)

    async def _budget_of(self, namespace: str, pod: Object) -> Object | None:
        page = await self._stores[BUDGETS].list(Context(namespace=namespace), ListQuery(f"{namespace}/"))
        pod_labels = pod["metadata"].get("labels") or {}
        found = []
        for entry in page.entries:
            selector = (entry.peek().get("spec") or {}).get("selector")
            if selector is not None and labels.from_label_selector(selector).matches(pod_labels):
                found.append(entry.peek())
        if len(found) > 1:
            raise StatusError(500, "", _SEVERAL)
        return found[0] if found else None

    async def _use(self, ctx: Context, budget: Object, pod: str) -> None:
        """Take one disruption from the budget, or refuse."""
        meta = budget["metadata"]
        for attempt in range(_ATTEMPTS):
            current = (await self._stores[BUDGETS].get(Context(namespace=ctx.namespace), meta["name"])).object()
            _take(current, pod)
            if ctx.dry_run:
                return
            try:
                await self._client.update(_BUDGETS, ctx.namespace, current, subresource="status")
                return
            except StatusError as error:
                if error.code != 409 or attempt == _ATTEMPTS - 1:
                    raise
            await asyncio.sleep(_BACKOFF)

    async def _mark(self, ctx: Context, store: Store, name: str, wanted: Object) -> None:
        """Say in the pod's status why it goes. A version that `wanted` names is the new one from then on."""
        preconditions = wanted.get("preconditions") or {}

        async def mark(current: Object | None) -> Object:
            if current is None:
                raise status.not_found(PODS, name)
            _check(preconditions, current)
            set_condition(current, dict(_EVICTED))
            return current

        marked, _ = await store.update(ctx, name, mark, strategy=_Unchecked())
        if preconditions.get("resourceVersion") is not None:
            wanted["preconditions"] = {**preconditions, "resourceVersion": str(marked.revision)}


def _delete_options(eviction: Object, name: str, options: Object) -> Object:
    """What the deletion is asked to be; a dry run by what either says."""
    wanted = dict(eviction.get("deleteOptions") or {})
    unsafe = "ignoreStoreReadErrorWithClusterBreakingPotential"
    if wanted.get(unsafe):
        text = "can not be set for pod eviction, try after removing the option"
        raise status.invalid(_KIND, name, [field.invalid(f"deleteOptions.{unsafe}", True, text)])
    inner, outer = wanted.get("dryRun") or [], options.get("dryRun") or []
    if inner and outer and inner != outer:
        texts = " and ".join(f"[{' '.join(given)}]" for given in (outer, inner))
        raise StatusError(500, "", f"Non-matching dry-run options in request and content: {texts}")
    if inner or outer:
        wanted["dryRun"] = inner or outer
    return wanted


def _check(preconditions: Object, pod: Object) -> None:
    """The deletion's preconditions hold for the mark that goes before it, too."""
    meta = pod["metadata"]
    for key, what, gone in (
        ("uid", "UID", "have been deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "have been modified"),
    ):
        if (wanted := preconditions.get(key)) and wanted != meta.get(key):
            why = f"the {what} in the precondition ({wanted}) does not match the {what} in record ({meta.get(key)})."
            raise status.conflict(_RECORD, meta.get("name") or "", f"{why} The object might {gone}")


def _take(budget: Object, pod: str) -> None:
    found = budget.setdefault("status", {})
    name = budget["metadata"]["name"]
    if (found.get("observedGeneration") or 0) < (budget["metadata"].get("generation") or 0):
        raise _refusal(f"The disruption budget {name} is still being processed by the server.", 10)
    allowed = found.get("disruptionsAllowed") or 0
    if allowed < 0:
        raise status.forbidden(BUDGETS, name, "pdb disruptions allowed is negative")
    if len(found.get("disruptedPods") or {}) > _MAX_DISRUPTED:
        raise status.forbidden(BUDGETS, name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller")
    if allowed == 0:
        text = f"The disruption budget {name} needs {found.get('desiredHealthy', 0)} healthy pods and has "
        raise _refusal(f"{text}{found.get('currentHealthy', 0)} currently", 0)
    found["disruptionsAllowed"] = allowed - 1
    if allowed == 1:
        _deny(budget)
    found.setdefault("disruptedPods", {})[pod] = now_rfc3339()


class _Unchecked(Strategy):
    """The server's own change of a status."""


def _refusal(message: str, retry_after: int) -> StatusError:
    details: Object = {"causes": [{"reason": "DisruptionBudget", "message": message}]}
    error = StatusError(429, "TooManyRequests", _REFUSED, details)
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return error


def _deny(budget: Object) -> None:
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "lastTransitionTime": now_rfc3339(),
        "observedGeneration": budget["status"].get("observedGeneration", 0),
    }
    conditions = budget["status"].setdefault("conditions", [])
    conditions[:] = [*(c for c in conditions if c.get("type") != "DisruptionAllowed"), condition]


def _ignores_budgets(pod: Object) -> bool:
    """Pods that have ended, wait for a node, or go already disrupt nothing."""
    found = pod.get("status") or {}
    return found.get("phase") in ("Succeeded", "Failed", "Pending") or bool(pod["metadata"].get("deletionTimestamp"))


def _ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def _evicts_unhealthy(budget: Object) -> bool:
    policy = (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy")
    if policy == "AlwaysAllow":
        return True
    found = budget.get("status") or {}
    return (found.get("currentHealthy") or 0) >= (found.get("desiredHealthy") or 0) and (found.get("desiredHealthy") or 0) > 0
