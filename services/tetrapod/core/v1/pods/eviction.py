"""`pods/eviction`: deletion of a pod that PodDisruptionBudgets can reject.

Upstream: pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from tetrapod.core.subresources.stores import BUDGETS, PODS, Stores
from tetrapod.core.v1.pods.binding import SUCCESS, set_condition
from tetrapod.core.v1.pods.disruptions import evicts_unhealthy, still_processed, take_disruption
from tetrapod.generic.client.interface import Client
from tetrapod.generic.endpoints.options import validate_delete_options
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.queries import ListQuery
from tetrapod.machinery import field, labels, status
from tetrapod.machinery.gvk import GroupKind, GroupResource, GroupVersionResource, Object
from tetrapod.machinery.status import StatusError

T = TypeVar("T")

_SEVERAL_BUDGETS: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)
_BUDGETS: Final = GroupVersionResource("policy", "v1", "poddisruptionbudgets")
_KIND: Final = GroupKind("policy", "Eviction")
_POD_RECORD: Final = GroupResource("", "Pod")
_EVICTED: Final[Object] = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_ATTEMPTS: Final = 20
_BACKOFF: Final = 0.01


class EvictionRest(Rest):
    """The subresource `pods/eviction`.

    Creating an Eviction deletes the pod and takes one disruption from its PodDisruptionBudget. The eviction is rejected
    with 429 if the budget allows no disruption.

    Pods that have finished, are pending or are being deleted need no disruption; pods that are not ready need none if
    the budget says so. A pod that may still become ready is then deleted only in the revision that was read.

    Args:
        client: the server's own client, so that managed fields show that the server updated the budget's status.
    """

    also_accepts = frozenset({"policy/v1beta1"})

    def __init__(self, stores: Stores, client: Client) -> None:
        self._stores = stores
        self._client = client

    async def create(self, ctx: Context, name: str, obj: Object, validate: Any, options: Object) -> Object:
        if ((obj.get("metadata") or {}).get("name") or "") != name:
            raise status.bad_request("name in URL does not match name in Eviction object")
        delete_options = _delete_options(obj, name, options)
        if obj.get("deleteOptions") is not None:
            obj["deleteOptions"] = dict(delete_options)  # admission sees the dryRun of the query in it
        if validate is not None:
            await validate(obj)
        dry_run = bool(delete_options.get("dryRun"))
        inner = Context(ctx.user, ctx.namespace, ctx.version, "", dry_run, ctx.warnings, ctx.annotations)
        pod = await self._evict_exempt(inner, name, delete_options)
        if pod is not None:
            await self._evict_by_budget(inner, pod, delete_options)
        return dict(SUCCESS)

    async def _evict_exempt(self, ctx: Context, name: str, delete_options: Object) -> Entry | None:
        """Delete the pod if its eviction needs no permission of a budget (`_ignores_budgets`).

        If the client names no resourceVersion, the pod is read again after each conflict.

        Returns:
            None if the pod was deleted; otherwise the pod as it was read, because budgets must be checked.

        Raises:
            StatusError: 404, the pod does not exist; 409, a precondition of the client does not hold, or each attempt
                had a conflict; 422, the delete options are invalid.
        """
        versioned = _names_version(delete_options)

        async def attempt() -> Entry | None:
            entry = await self._stores[PODS].get(ctx, name)
            pod = entry.peek()
            if not _ignores_budgets(pod):
                return entry
            any_version = versioned or _has_ended(pod)
            await self._delete(ctx, name, delete_options if any_version else _with_version(delete_options, entry))
            return None

        return await (attempt() if versioned else _retried(attempt))

    async def _evict_by_budget(self, ctx: Context, entry: Entry, delete_options: Object) -> None:
        """Delete a pod if its PodDisruptionBudget allows it.

        A pod without a budget is deleted. The eviction of a ready pod uses one of the budget's allowed disruptions. The
        eviction of a pod that is not ready uses one only if `evicts_unhealthy` returns False.

        Args:
            entry: the pod, as it was read.

        Raises:
            StatusError: one of these.

                - 403 or 429: the budget does not allow the eviction.
                - 404: the pod does not exist any more.
                - 409: a precondition of the client does not hold, or the budget changed at every attempt to update it.
                - 422: the delete options are invalid.
                - 500: several budgets select the pod.
        """
        pod, name = entry.peek(), entry.name
        budget = await self._budget_of(ctx.namespace, pod)
        if budget is None:
            await self._delete(ctx, name, delete_options)
        elif _ready(pod) or not evicts_unhealthy(budget):
            await self._use(ctx, budget, name)
            await self._delete(ctx, name, delete_options)
        else:
            try:
                await self._delete(ctx, name, _with_version(delete_options, entry))
            except StatusError as error:
                if error.code != 409 or _names_version(delete_options):
                    raise
                raise still_processed(budget["metadata"]["name"]) from error

    async def _delete(self, ctx: Context, name: str, delete_options: Object) -> None:
        """Set the pod's condition DisruptionTarget and delete the pod; a dry run only checks whether it could.

        Raises:
            StatusError: 404, the pod does not exist; 409, a precondition does not hold; 422, the options are invalid.
        """
        if not ctx.dry_run:
            delete_options = await self._mark(ctx, name, delete_options)
        validate_delete_options(delete_options)
        await self._stores[PODS].delete(ctx, name, dict(delete_options), None)

    async def _budget_of(self, namespace: str, pod: Object) -> Object | None:
        """Return the PodDisruptionBudget whose selector matches the pod, or None.

        Raises:
            StatusError: 500, several budgets match.
        """
        page = await self._stores[BUDGETS].list(Context(namespace=namespace), ListQuery(f"{namespace}/"))
        pod_labels = pod["metadata"].get("labels") or {}
        budgets = []
        for entry in page.entries:
            selector = (entry.peek().get("spec") or {}).get("selector")
            if selector is not None and labels.from_label_selector(selector).matches(pod_labels):
                budgets.append(entry.peek())
        if len(budgets) > 1:
            raise StatusError(500, "", _SEVERAL_BUDGETS)
        return budgets[0] if budgets else None

    async def _use(self, ctx: Context, budget: Object, pod: str) -> None:
        """Take one disruption from the stored budget.

        A dry run checks the budget but does not change it. Conflicts of the status update are retried.

        Args:
            budget: the budget; only its name is used, and its status is read again.
            pod: the pod's name.

        Raises:
            StatusError: 429, no disruption is allowed now; 403, disruptionsAllowed is negative or disruptedPods has too
                many entries; 409 after the last attempt.
        """
        name = budget["metadata"]["name"]

        async def attempt() -> None:
            current = (await self._stores[BUDGETS].get(Context(namespace=ctx.namespace), name)).object()
            take_disruption(current, pod)
            if not ctx.dry_run:
                await self._client.update(_BUDGETS, ctx.namespace, current, subresource="status")

        await _retried(attempt)

    async def _mark(self, ctx: Context, name: str, delete_options: Object) -> Object:
        """Set the condition DisruptionTarget of the pod, which changes the pod's resourceVersion.

        Returns:
            The delete options for the changed pod: if the preconditions name a resourceVersion, it is the new one.

        Raises:
            StatusError: 404, the pod does not exist; 409, a precondition does not hold.
        """
        preconditions = delete_options.get("preconditions") or {}

        async def mark(current: Object | None) -> Object:
            if current is None:
                raise status.not_found(PODS, name)
            _check(preconditions, current)
            set_condition(current, dict(_EVICTED))
            return current

        marked, _ = await self._stores[PODS].update(ctx, name, mark, strategy=_Unchecked())
        return _with_version(delete_options, marked) if _names_version(delete_options) else delete_options


class _Unchecked(Strategy):
    """The strategy with which the server sets the pod's condition DisruptionTarget: without validation."""


async def _retried(attempt: Callable[[], Awaitable[T]]) -> T:
    """Call and await `attempt`, again after each conflict (409), at most `_ATTEMPTS` times; return its result.

    Raises:
        StatusError: the conflict of the last attempt, or any other error of an attempt.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return await attempt()
        except StatusError as error:
            if error.code != 409:
                raise
        await asyncio.sleep(_BACKOFF)
    return await attempt()


def _delete_options(eviction: Object, name: str, options: Object) -> Object:
    """Return a copy of the eviction's deleteOptions, with dryRun from the request's query if the options have none.

    Args:
        eviction: the Eviction.
        name: the pod's name.
        options: the options of the request's query.

    Raises:
        StatusError: 422, an option is not allowed for evictions; 500, the two dryRun values differ.
    """
    delete_options = dict(eviction.get("deleteOptions") or {})
    unsafe = "ignoreStoreReadErrorWithClusterBreakingPotential"
    if delete_options.get(unsafe):
        text = "can not be set for pod eviction, try after removing the option"
        raise status.invalid(_KIND, name, [field.invalid(f"deleteOptions.{unsafe}", True, text)])
    inner, outer = delete_options.get("dryRun") or [], options.get("dryRun") or []
    if inner and outer and inner != outer:
        texts = " and ".join(f"[{' '.join(values)}]" for values in (outer, inner))
        raise StatusError(500, "", f"Non-matching dry-run options in request and content: {texts}")
    if inner or outer:
        delete_options["dryRun"] = inner or outer
    return delete_options


def _names_version(delete_options: Object) -> bool:
    """Return whether the preconditions of the delete options name a resourceVersion, which may be empty."""
    return (delete_options.get("preconditions") or {}).get("resourceVersion") is not None


def _with_version(delete_options: Object, entry: Entry) -> Object:
    """Return a copy of the delete options whose preconditions require the resourceVersion of the entry."""
    preconditions = {**(delete_options.get("preconditions") or {}), "resourceVersion": str(entry.revision)}
    return {**delete_options, "preconditions": preconditions}


def _check(preconditions: Object, pod: Object) -> None:
    """Compare the preconditions of the delete options with the pod, raising StatusError 409 if one does not hold.

    It is called before the condition DisruptionTarget is set, which a pod that is not deleted must not get.
    """
    meta = pod["metadata"]
    for key, label, explanation in (
        ("uid", "UID", "have been deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "have been modified"),
    ):
        if (expected := preconditions.get(key)) and expected != meta.get(key):
            message = (
                f"the {label} in the precondition ({expected}) does not match the {label} in record ({meta.get(key)})."
            )
            raise status.conflict(_POD_RECORD, meta.get("name") or "", f"{message} The object might {explanation}")


def _ignores_budgets(pod: Object) -> bool:
    """Return whether the pod has finished, is pending or is being deleted, so that its eviction disrupts nothing."""
    return _has_ended(pod) or (pod.get("status") or {}).get("phase") == "Pending"


def _has_ended(pod: Object) -> bool:
    """Return whether the pod has finished or is being deleted, so that it can never become ready again."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed") or bool(pod["metadata"].get("deletionTimestamp"))


def _ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
