"""Two conditions about what was let in before the rules were as strict as today.

NonStructuralSchema (upstream: pkg/controller/nonstructuralschema) and KubernetesAPIApprovalPolicyConformant, for groups that belong
to the community (pkg/controller/apiapproval).
"""

from __future__ import annotations

import asyncio
from typing import Final

import orjson

from tetrapod.extensions.conditions import API_APPROVED, NON_STRUCTURAL, condition, equivalent, put, remove
from tetrapod.extensions.controllers.controller import CrdController
from tetrapod.extensions.crds import Crd, Crds
from tetrapod.extensions.validation.approval import approval, is_protected
from tetrapod.extensions.validation.internal import Spec
from tetrapod.generic.client.interface import Client
from tetrapod.generic.registry.context import LARGE
from tetrapod.machinery.conditions import find_condition
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema.structural_rules import unsupported, validate_structural

_PAUSE: Final = 0.01
"""After each definition: at a start there may be thousands, which are looked at beside all else."""
_CONFORMANT: Final = {"invalid": "InvalidAnnotation", "missing": "MissingAnnotation", "bypassed": "UnapprovedAnnotation"}


class NonStructuralController(CrdController):
    name = "NonStructuralSchemaController"
    patience = 10.0  # 5 ms for each of 24 kB, which nobody waits for: at a start there is more urgent work, of other services too

    def __init__(self, crds: Crds, client: Client) -> None:
        super().__init__(crds, client)
        self._checked: dict[str, tuple[str, int]] = {}  # uid and generation: schemas can be large

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
        self._checked[name] = (crd.uid, crd.generation)
        raw = crd.entry.raw
        obj = orjson.loads(raw)
        # Schemas can be large: others are served meanwhile.
        told = await asyncio.to_thread(non_structural, obj) if len(raw) >= LARGE else non_structural(obj)
        old = find_condition(obj, NON_STRUCTURAL)
        if equivalent(told, old):
            await asyncio.sleep(_PAUSE)
            return
        if told is None:
            remove(obj, NON_STRUCTURAL)
        else:
            put(obj, told)
        if await self.write_status(obj) is None:
            self._checked.pop(name, None)


def non_structural(crd: Object) -> Object | None:
    """The condition that is due; None for a structural schema."""
    spec = Spec.of(crd["spec"])
    errors: list[FieldError] = []
    if spec.preserve_unknown:
        errors.append(FieldError("FieldValueInvalid", "spec.preserveUnknownFields", "must be false", True))
    holders = [("spec.validation", spec.schema)] + [(f"spec.versions[{i}].schema", v.schema) for i, v in enumerate(spec.versions)]
    for path, holder in holders:
        schema = (holder or {}).get("openAPIV3Schema")
        if schema is None:
            continue
        if text := unsupported(schema):
            return condition(NON_STRUCTURAL, "True", "StructuralError", f"failed to check validation schema: {text}")
        errors += validate_structural(schema, f"{path}.openAPIV3Schema")
    if not errors:
        return None
    texts = [str(e) for e in errors]
    return condition(NON_STRUCTURAL, "True", "Violations", texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


class APIApprovalController(CrdController):
    name = "KubernetesAPIApprovalPolicyConformantConditionController"

    def concerns(self, old: Crd | None, new: Crd | None) -> bool:
        return new is not None and is_protected(new.group)

    async def sync(self, name: str) -> None:
        crd = self.crds.get(name)
        if crd is None:
            return
        obj = crd.object()
        told = api_approved(obj)
        if told is None or equivalent(told, find_condition(obj, API_APPROVED)):
            return
        put(obj, told)
        await self.write_status(obj)


def api_approved(crd: Object) -> Object | None:
    """The condition that is due; None for groups that need no approval."""
    if not is_protected(crd["spec"]["group"]):
        return None
    found = approval(crd)
    if found.state == "approved":
        return condition(API_APPROVED, "True", "ApprovedAnnotation", found.reason)
    return condition(API_APPROVED, "False", _CONFORMANT[found.state], found.reason)
