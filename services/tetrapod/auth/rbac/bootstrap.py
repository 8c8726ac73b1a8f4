"""The reconciliation of the bootstrap policy with storage, which adds missing parts and removes nothing.

It runs in the post-start hook `rbac/bootstrap-roles`. Objects with the annotation autoupdate=false are not changed.
Rules, subjects, labels and selectors that users have added are kept. A binding with another roleRef is replaced. The
objects are written directly to storage, because at the first start no user has permissions yet. One list of each kind
finds the differences, and only those are written.

Upstream: pkg/registry/rbac/rest/storage_rbac.go and the reconciliation of component-helpers.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Coroutine, Mapping
from typing import Any, Final

from tetrapod.auth.rbac.aggregation import MANAGER as AGGREGATION_MANAGER
from tetrapod.auth.rbac.aggregation import aggregated_rules
from tetrapod.auth.rbac.coverage import missing_rights
from tetrapod.auth.rbac.policy import AUTOUPDATE, Policy, bootstrap_policy
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.errors import KeyExists
from tetrapod.generic.storage.interface import ResourceStorage, StorageFactory
from tetrapod.generic.storage.queries import ListQuery
from tetrapod.generic.storage.writes import Updated
from tetrapod.machinery.copying import copy_object
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.timestamps import now_rfc3339

log = logging.getLogger(__name__)

_SPLIT_BINDINGS: Final = {"system:public-info-viewer": "system:discovery"}
"""ClusterRoleBindings that older releases did not have, and the binding that granted the same rights then."""
_MOVED_ROLES: Final = {f"system:aggregate-to-{name}": name for name in ("admin", "edit", "view")}
"""ClusterRoles that hold the rules of a role that is aggregated since Kubernetes 1.9, and the name of that role."""


async def reconcile_bootstrap_policy(storage: StorageFactory, *, services_apart: bool = False) -> dict[str, int]:
    """Create the missing objects of the bootstrap policy, and complete the existing ones.

    Missing rules and subjects are added, unless the annotation autoupdate is "false". A binding with another roleRef is
    replaced.

    Args:
        storage: provides the storage of the RBAC resources.
        services_apart: whether aggregator, core, extensions and auth run as separate processes. They then call each
            other with client certificates, and the policy also grants the permissions for that.

    Returns:
        A revision for each kind, by its storage prefix, at which storage contains the whole policy.
    """
    policies = bootstrap_policy(services_apart=services_apart)
    _fill_aggregated(policies)
    reached = await asyncio.gather(*(_reconcile_kind(storage.resource(policy.storage), policy) for policy in policies))
    return {policy.storage.prefix: revision for policy, revision in zip(policies, reached, strict=True)}


def _fill_aggregated(policies: list[Policy]) -> None:
    """Set the rules of aggregated ClusterRoles in the policy, for the case that they must be created.

    Afterwards the aggregation controller maintains them.

    Args:
        policies: the whole policy, ClusterRoles first; they are modified.
    """
    roles = policies[0].objects
    for role in sorted((r for r in roles if "aggregationRule" in r), key=_depth):
        role["rules"] = aggregated_rules(role, roles)


def _depth(role: Object) -> int:
    """Return 0, 1 or 2 for the ClusterRoles view, edit and admin, the order in which their rules must be computed.

    `edit` and `admin` each select the role before by its labels.

    Raises:
        ValueError: the role has another name.
    """
    return ("view", "edit", "admin").index(role["metadata"]["name"])


async def _reconcile_kind(storage: ResourceStorage, policy: Policy) -> int:
    page = await storage.list(ListQuery())
    stored = {entry.key: entry for entry in page.entries}
    work = [
        change
        for wanted in (_inheriting(wanted, stored) for wanted in policy.objects)
        if (change := _change(storage, stored.get(_key(wanted)), wanted)) is not None
    ]
    written = await asyncio.gather(*work)
    return max([int(page.resource_version), *written])


def _inheriting(wanted: Object, stored: Mapping[str, Entry]) -> Object:
    """Return a bootstrap role or binding with the users' changes of the object that had its rights in older releases.

    Such objects are a ClusterRoleBinding that was split from `system:discovery`, and the ClusterRoles with the rules of
    admin, edit and view, which are aggregated now. Without this, an upgrade would give anonymous users discovery again
    where `system:discovery` had been restricted.

    Args:
        wanted: the bootstrap object, which is not modified.
        stored: the stored objects of the same kind by storage key: NAME, or NAMESPACE/NAME for namespaced kinds.

    Returns:
        A copy of `wanted` with the labels and annotations of the older object, and with its subjects (binding) or rules
        (role); parts of `wanted` that are then missing are added. It is `wanted` itself if an object of its name is
        stored, if it has no older object or that is not stored, or if the older object has an aggregationRule.

    Upstream: pkg/registry/rbac/rest/storage_rbac.go, primeSplitClusterRoleBindings and primeAggregatedClusterRoles.
    """
    name = wanted["metadata"]["name"]
    source = (_SPLIT_BINDINGS if "roleRef" in wanted else _MOVED_ROLES).get(name)
    entry = stored.get(source) if source is not None and name not in stored else None
    if entry is None or "aggregationRule" in (old := entry.peek()):
        return wanted
    copied = {part: old["metadata"].get(part) or {} for part in ("labels", "annotations")}
    part = "subjects" if "roleRef" in wanted else "rules"
    inherited = {**wanted, "metadata": {**wanted["metadata"], **copied}, part: old.get(part) or []}
    return reconciled(inherited, wanted) or inherited


def _key(obj: Object) -> str:
    meta = obj["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else str(meta["name"])


def _change(storage: ResourceStorage, entry: Entry | None, wanted: Object) -> Coroutine[Any, Any, int] | None:
    """Return a coroutine that creates, updates or replaces the object and returns the revision of the write.

    Args:
        storage: the storage of the object's kind.
        entry: the stored object, or None if it must be created.
        wanted: the bootstrap object. The stored object is replaced if its roleRef differs, else completed.

    Returns:
        None if the stored object has all parts of `wanted`, or users have disabled its automatic update.
    """
    key = _key(wanted)
    if entry is None:
        return _create(storage, key, wanted)
    if reconciled(entry.peek(), wanted) is None:
        return None
    if entry.peek().get("roleRef") != wanted.get("roleRef"):
        return _replace(storage, key, wanted)
    return _update(storage, key, wanted)


async def _create(storage: ResourceStorage, key: str, wanted: Object) -> int:
    try:
        return (await storage.create(key, _new(wanted))).revision
    except KeyExists:  # another replica created it first
        return await _update(storage, key, wanted)


async def _update(storage: ResourceStorage, key: str, wanted: Object) -> int:
    async def change(current: Object | None, entry: Entry | None) -> Updated | None:
        if current is None:
            return Updated(_new(wanted))
        better = reconciled(current, wanted)
        return Updated(better) if better is not None else None

    return (await storage.guaranteed_update(key, change, allow_absent=True)).revision


async def _replace(storage: ResourceStorage, key: str, wanted: Object) -> int:
    """Replace a stored binding by a new object with a new uid, because a roleRef is immutable.

    Args:
        storage: the storage of the bindings.
        key: the storage key.
        wanted: the new binding, without system metadata; it is not modified.

    Returns:
        The revision of the write.
    """

    async def change(current: Object | None, entry: Entry | None) -> Updated | None:
        return Updated(_new(wanted))

    return (await storage.guaranteed_update(key, change, allow_absent=True)).revision


def _new(wanted: Object) -> Object:
    """Return a copy of the object with uid, creationTimestamp and managedFields.

    Args:
        wanted: the bootstrap object, which is not modified.
    """
    obj = copy_object(wanted)
    created = now_rfc3339()
    obj["metadata"] = {
        **obj["metadata"],
        "uid": str(uuid.uuid4()),
        "creationTimestamp": created,
        "managedFields": _managed(obj, created),
    }
    return obj


def _managed(obj: Object, time: str) -> list[Object]:
    """Return the managedFields of a new object of the policy.

    The aggregation controller owns aggregated rules; kube-apiserver owns all other fields.
    """
    parts: dict[str, Object] = {
        part: {".": {}, **{f"f:{key}": {} for key in obj["metadata"][part]}} for part in ("annotations", "labels")
    }
    own: Object = {"f:metadata": {f"f:{part}": fields for part, fields in parts.items()}}
    if "aggregationRule" in obj:
        rules = {"manager": AGGREGATION_MANAGER, "operation": "Apply", **_entry(obj, time, {"f:rules": {}})}
        own = {"f:aggregationRule": {".": {}, "f:clusterRoleSelectors": {}}, **own}
        return [rules, {"manager": "kube-apiserver", "operation": "Update", **_entry(obj, time, own)}]
    own |= {f"f:{part}": {} for part in ("roleRef", "rules", "subjects") if part in obj}
    return [{"manager": "kube-apiserver", "operation": "Update", **_entry(obj, time, own)}]


def _entry(obj: Object, time: str, fields: Object) -> Object:
    return {"apiVersion": obj["apiVersion"], "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields}


def reconciled(stored: Object, wanted: Object) -> Object | None:
    """Return a copy of `stored` with the missing parts of `wanted` and, for a binding, with its roleRef.

    Args:
        stored: the stored role or binding, which is not modified.
        wanted: the bootstrap object of the same name.

    Returns:
        None if nothing is missing or different, or the annotation autoupdate is "false". Unchanged parts are shared.
    """
    if (stored["metadata"].get("annotations") or {}).get(AUTOUPDATE) == "false":
        return None
    better = dict(stored)
    better["metadata"] = _with_metadata(stored["metadata"], wanted["metadata"])
    merge = _merge_binding if "roleRef" in wanted else _merge_role
    merge(better, stored, wanted)
    return better if better != stored else None


def _with_metadata(stored: Object, wanted: Object) -> Object:
    meta = dict(stored)
    for part in ("labels", "annotations"):
        merged = {**wanted[part], **(stored.get(part) or {})}  # values that users have set are kept
        if merged != stored.get(part):
            meta[part] = merged
    return meta


def _merge_role(better: Object, stored: Object, wanted: Object) -> None:
    if "aggregationRule" in wanted:
        selectors = (stored.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
        more = _missing(selectors, wanted["aggregationRule"]["clusterRoleSelectors"])
        if more:
            better["aggregationRule"] = {"clusterRoleSelectors": [*selectors, *more]}
        return
    rules = stored.get("rules") or []
    if rules != wanted["rules"] and (missing := list(missing_rights(rules, wanted["rules"]))):
        better["rules"] = [*rules, *missing]


def _merge_binding(better: Object, stored: Object, wanted: Object) -> None:
    if stored.get("roleRef") != wanted["roleRef"]:
        better["roleRef"] = wanted["roleRef"]
    subjects = stored.get("subjects") or []
    if more := _missing(subjects, wanted.get("subjects", [])):
        better["subjects"] = [*subjects, *more]


def _missing(have: list[Any], wanted: list[Any]) -> list[Any]:
    return [item for item in wanted if item not in have]
