"""Strategies of ResourceClaim, ResourceClaimTemplate and the claim's status.

They authorize administrative access to devices and the writers of each part of a claim's status. Beyond `update` on the
status, writing the allocation (the scheduler) requires permission on `resourceclaims/binding`, writing the state of
devices (their drivers) on `resourceclaims/driver`.
Upstream: pkg/registry/resource/{utils.go,resourceclaim,resourceclaimtemplate}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.resource import GROUP
from tetrapod.core.resource.resource_claims.gated import STATUS_FIELDS
from tetrapod.generic.admission.plugins.namespace_lifecycle import NAMESPACES
from tetrapod.generic.authentication.serviceaccount import NODE_NAME_KEY, split_username
from tetrapod.generic.authorization.interface import Attributes, Authorizer, Decision
from tetrapod.generic.authorization.message import forbidden_status
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.create import creation_errors
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.registry.status import ALL_METADATA, StatusStrategy
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import GroupKind, Object
from tetrapod.machinery.status import invalid
from tetrapod.machinery.user import UserInfo

_LABEL: Final = "resource.kubernetes.io/admin-access"
_NO_ACCESS: Final = f"admin access to devices requires the `{_LABEL}: true` label on the containing namespace"
_BINDING: Final = (
    'changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="{}" '
    "permission: {}"
)
_DRIVER: Final = 'changing status.devices requires resource="resourceclaims/driver", verb="{}" permission: {}'


class ClaimAccess:
    """The authorization checks for claims and claim templates.

    Args:
        authorizer: decides about writes of a claim's status; None allows all.
        storages: the storage of namespaces.
    """

    def __init__(self, authorizer: Authorizer | None, storages: StorageFactory) -> None:
        self._authorizer = authorizer
        self._namespaces = Lister(storages, NAMESPACES)

    async def admin(self, namespace: str, path: str) -> list[FieldError]:
        """Return an error at `path` unless the namespace has the label for administrative access to devices.

        The result is [] if it has. The namespace is read from the store, not from the cache.
        """
        stored = await self._namespaces.get_live("", namespace)
        labels = ((stored or {}).get("metadata") or {}).get("labels") or {}
        return [] if labels.get(_LABEL) == "true" else [field.forbidden(path, _NO_ACCESS)]

    async def denial_reason(self, ctx: Context, verb: str, subresource: str, namespace: str, name: str) -> str:
        """Return the error text if the user may not perform the verb on a subresource of resourceclaims, else "".

        Args:
            subresource: "binding" or "driver", which exist only for authorization.
            namespace: the namespace to authorize for, or "".
            name: the name to authorize for, such as that of a driver, or "".
        """
        if self._authorizer is None:
            return ""
        attributes = Attributes(
            ctx.user, verb, namespace, GROUP, ctx.version, "resourceclaims", subresource, name, resource_request=True
        )
        result = await self._authorizer.authorize(attributes)
        return "" if result.decision is Decision.ALLOW else forbidden_status(attributes, result.reason).message


class AdminStrategy(KindStrategy):
    """The strategy of ResourceClaims and ResourceClaimTemplates, which checks administrative access to devices.

    The check is made on create only, because the spec is immutable.

    Args:
        access: checks that the namespace allows administrative access.
        kind: the kind, for errors.
        requests: returns the device requests of an object.
    """

    def __init__(
        self, access: ClaimAccess, kind: str, requests: Callable[[Object], list[Object]], **options: Any
    ) -> None:
        super().__init__(**options)
        self._access, self._kind, self._requests = access, kind, requests

    async def begin_create(self, ctx: Context, obj: Object) -> None:
        self.gated_fields.drop(obj, {})
        for i, request in enumerate(self._requests(obj)):
            if not (request.get("exactly") or {}).get("adminAccess"):
                continue
            # Upstream reports the path of a claim for templates too.
            errors = await self._access.admin(ctx.namespace, f"spec.devices.requests[{i}].adminAccess")
            if errors:
                errors += creation_errors(self, ctx, obj, namespaced=True)
                raise invalid(GroupKind(GROUP, self._kind), obj["metadata"].get("name") or "", errors)
            return


class ClaimStatusStrategy(StatusStrategy):
    """The strategy of `resourceclaims/status`, which authorizes changes of the allocation and of device status.

    Args:
        access: the authorization checks.
        main: the strategy of ResourceClaims themselves.
    """

    tabular = False

    def __init__(self, access: ClaimAccess, main: KindStrategy, **options: Any) -> None:
        super().__init__(main, keep_metadata=ALL_METADATA, **options)
        self._access = access

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        """Drop fields of disabled feature gates, and status.devices entries of devices that the update deallocates."""
        super().prepare_for_update(ctx, new, old)
        STATUS_FIELDS.drop(new, old)
        status = new.get("status") or {}
        deallocated = set(map(_device, _results(old))) - set(map(_device, _results(new)))
        kept = [device for device in status.get("devices") or () if _device(device) not in deallocated]
        if kept:
            status["devices"] = kept
        else:
            status.pop("devices", None)

    async def begin_update(self, ctx: Context, new: Object, old: Object) -> None:
        STATUS_FIELDS.drop(new, old)
        errors = await self._admin(ctx, new, old)
        if feature_gates.enabled("DRAResourceClaimGranularStatusAuthorization"):
            errors += await self._binding(ctx, new, old)
            allocated = (new.get("status") or {}).get("allocation") is not None
            if allocated and feature_gates.enabled("DRAResourceClaimDeviceStatus"):
                errors += await self._devices(ctx, new, old)
        if errors:
            name = new["metadata"].get("name") or ""
            raise invalid(GroupKind(GROUP, "ResourceClaim"), name, errors + self.validate_update(ctx, new, old))

    async def _admin(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        if any(result.get("adminAccess") for result in _results(old)):
            return []
        for i, result in enumerate(_results(new)):
            if result.get("adminAccess"):
                return await self._access.admin(ctx.namespace, f"status.allocation.devices.results[{i}].adminAccess")
        return []

    async def _binding(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        status, old_status = new.get("status") or {}, old.get("status") or {}
        if all((status.get(key) or None) == (old_status.get(key) or None) for key in ("allocation", "reservedFor")):
            return []
        reason = await self._access.denial_reason(ctx, ctx.verb, "binding", "", "")
        return [field.forbidden("status.allocation", _BINDING.format(ctx.verb, reason))] if reason else []

    async def _devices(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        allocation = (new.get("status") or {}).get("allocation") or {}
        verbs = [f"arbitrary-node:{ctx.verb}"]
        if _lives_on(ctx.user, _node_of(allocation)):
            verbs.insert(0, f"associated-node:{ctx.verb}")
        errors = []
        for driver in sorted(_changed_drivers(new, old)):
            reasons = []
            for verb in verbs:
                reasons.append(await self._access.denial_reason(ctx, verb, "driver", ctx.namespace, driver))
                if not reasons[-1]:
                    break
            else:
                errors.append(field.forbidden("status.devices", _DRIVER.format(f"[{' '.join(verbs)}]", reasons[0])))
        return errors


def _results(claim: Object) -> list[Object]:
    results: list[Object] = (((claim.get("status") or {}).get("allocation") or {}).get("devices") or {}).get(
        "results"
    ) or []
    return results


def _device(given: Object) -> tuple[str, ...]:
    """Return the key of a device in an allocation result or device status: driver, pool, device and share id."""
    return tuple(given.get(key) or "" for key in ("driver", "pool", "device", "shareID"))


def _changed_drivers(new: Object, old: Object) -> set[str]:
    """Return the names of the drivers whose entries in status.devices were added, changed or removed."""
    existing = {_device(d): d for d in (old.get("status") or {}).get("devices") or ()}
    drivers = set()
    for device in (new.get("status") or {}).get("devices") or ():
        if existing.pop(_device(device), None) != device:
            drivers.add(device.get("driver") or "")
    return drivers | {device.get("driver") or "" for device in existing.values()}


def _node_of(allocation: Object) -> str:
    """Return the name of the node that an allocation selects; "" unless it selects exactly one node by name."""
    terms = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or []
    if len(terms) != 1 or terms[0].get("matchExpressions") or len(terms[0].get("matchFields") or ()) != 1:
        return ""
    requirement = terms[0]["matchFields"][0]
    values = requirement.get("values") or []
    selects_one = requirement.get("key") == "metadata.name" and requirement.get("operator") == "In" and len(values) == 1
    return str(values[0]) if selects_one else ""


def _lives_on(user: UserInfo, node: str) -> bool:
    """Return whether the user is a service account whose token is bound to the node. False if `node` is ""."""
    return bool(node) and split_username(user.name) is not None and user.extra.get(NODE_NAME_KEY, ()) == (node,)
