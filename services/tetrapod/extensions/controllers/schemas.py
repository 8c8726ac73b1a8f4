"""The controllers of two conditions about definitions that were accepted under older, less strict rules.

NonStructuralSchema (upstream: pkg/controller/nonstructuralschema), and KubernetesAPIApprovalPolicyConformant for the
groups that are reserved for the Kubernetes community (upstream: pkg/controller/apiapproval).
"""

from __future__ import annotations

import asyncio
from typing import Final

import orjson

from tetrapod.extensions.conditions import API_APPROVED, NON_STRUCTURAL, condition, equivalent, put, remove
from tetrapod.extensions.controllers.controller import CrdController
from tetrapod.extensions.crds import Crd, Crds
from tetrapod.extensions.validation.approval import approval, is_protected
from tetrapod.generic.client.interface import Client
from tetrapod.generic.scheduling.offload import LARGE, offloaded
from tetrapod.machinery.conditions import find_condition
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema.structural_rules import unsupported, validate_structural

_PAUSE: Final = 0.01
"""Seconds to wait after each definition. At a start there may be thousands, which must not delay other work."""
_CONFORMANT: Final = {
    "invalid": "InvalidAnnotation",
    "missing": "MissingAnnotation",
    "bypassed": "UnapprovedAnnotation",
}


class NonStructuralController(CrdController):
    """The controller of the condition NonStructuralSchema. Each generation of a definition is checked once."""

    name = "NonStructuralSchemaController"
    # A check takes 5 ms for a definition of 24 kB. It waits until the more urgent work after a start is done.
    initial_delay_seconds = 10.0

    def __init__(self, crds: Crds, client: Client) -> None:
        super().__init__(crds, client)
        # uid and generation of the checked definitions, so that large schemas are not checked again
        self._checked: dict[str, tuple[str, int]] = {}

    def concerns(self, old: Crd | None, new: Crd | None) -> bool:
        if new is None:
            if old is not None:
                self._checked.pop(old.name, None)
            return False
        return self._checked.get(new.name) != (new.uid, new.generation)

    async def sync(self, name: str) -> None:
        crd = self.crds.get(name)
        if crd is None:
            return
        raw = crd.entry.raw
        obj = orjson.loads(raw)
        # Large schemas are checked in a thread, so that the event loop serves other requests.
        due = await offloaded(len(raw) >= LARGE, non_structural, obj)
        existing = find_condition(obj, NON_STRUCTURAL)
        checked = (crd.uid, crd.generation)
        if equivalent(due, existing):
            self._checked[name] = checked
            await asyncio.sleep(_PAUSE)
            return
        if due is None:
            remove(obj, NON_STRUCTURAL)
        else:
            put(obj, due)
        # The change that makes the update fail may arrive before that failure, and must then queue the definition.
        if await self.write_status(obj) is not None:
            self._checked[name] = checked


def non_structural(crd: Object) -> Object | None:
    """Return the condition NonStructuralSchema of a definition, or None if its schemas are structural.

    Unlike the errors of requests, its paths name each version, even if all versions have the same schema.
    """
    spec = crd["spec"]
    errors: list[FieldError] = []
    if spec.get("preserveUnknownFields"):
        errors.append(FieldError("FieldValueInvalid", "spec.preserveUnknownFields", "must be false", True))
    for index, version in enumerate(spec["versions"]):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            continue
        if text := unsupported(schema):
            message = f"failed to check validation schema for version {version['name']}: {text}"
            return condition(NON_STRUCTURAL, "Unknown", "StructuralError", message)
        errors += validate_structural(schema, f"spec.versions[{index}].schema.openAPIV3Schema")
    if not errors:
        return None
    return condition(NON_STRUCTURAL, "True", "Violations", aggregate_errors(errors))


class APIApprovalController(CrdController):
    """The controller of the condition KubernetesAPIApprovalPolicyConformant.

    It applies to groups below k8s.io and kubernetes.io only.
    """

    name = "KubernetesAPIApprovalPolicyConformantConditionController"

    def concerns(self, old: Crd | None, new: Crd | None) -> bool:
        return new is not None and is_protected(new.group)

    async def sync(self, name: str) -> None:
        crd = self.crds.get(name)
        if crd is None:
            return
        obj = crd.object()
        due = api_approved(obj)
        if due is None or equivalent(due, find_condition(obj, API_APPROVED)):
            return
        put(obj, due)
        await self.write_status(obj)


def api_approved(crd: Object) -> Object | None:
    """Return the condition KubernetesAPIApprovalPolicyConformant of a definition.

    Returns:
        None if the definition's group needs no approval.
    """
    if not is_protected(crd["spec"]["group"]):
        return None
    result = approval(crd)
    if result.state == "approved":
        return condition(API_APPROVED, "True", "ApprovedAnnotation", result.reason)
    return condition(API_APPROVED, "False", _CONFORMANT[result.state], result.reason)
