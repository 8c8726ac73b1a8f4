"""The definition of CSIDrivers, with their strategy, defaults, validation, warnings and table columns.

Upstream: pkg/registry/storage/csidriver/strategy.go and pkg/apis/storage/validation.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, NONE, UNSET, age, name_of, spec_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.validation.names import immutable, known
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.gated_fields import FieldGates, GatedFields
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor

_GROUP_POLICIES: Final = frozenset({"ReadWriteOnceWithFSType", "File", "None"})
_LIFECYCLE: Final = ["Persistent", "Ephemeral"]
_LEAST_EXPIRATION: Final = 600
_LONGEST_EXPIRATION: Final = 1 << 32
_SHORTEST_PERIOD: Final = 10
_FLAGS: Final = ("attachRequired", "podInfoOnMount", "storageCapacity")
_VOLUME_LIMITS: Final = "VolumeLimitScaling"
_UNSET: Final = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"


class CSIDriverStrategy(KindStrategy):
    """The strategy of CSIDrivers: metadata.generation is unset until the first change of the spec.

    Upstream: csidriver/strategy.go.
    """

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        self.gated_fields.drop(new, old)
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1


def definition() -> ResourceDefinition:
    """Return the resource definition of CSIDrivers: versions, strategy, subresources and columns."""
    strategy = CSIDriverStrategy(
        defaults=set_defaults,
        validator=validate,
        whole_update_validator=validate_update,
        warnings=warnings,
        allow_unconditional_update=False,
        return_deleted_object=True,
        gated_fields=FieldGates(GatedFields(_VOLUME_LIMITS, ("spec.preventPodSchedulingIfMissing",))),
    )
    return builtin("storage.k8s.io", "csidrivers", strategy, table=TABLE)


def set_defaults(obj: Object) -> None:
    """Set the defaults of a CSIDriver, which is modified.

    attachRequired is true, other switches are false, fsGroupPolicy is ReadWriteOnceWithFSType, and volumeLifecycleModes
    is [Persistent].
    """
    spec = obj.setdefault("spec", {})
    for key, value in (
        ("attachRequired", True),
        ("podInfoOnMount", False),
        ("storageCapacity", False),
        ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
        ("requiresRepublish", False),
        ("seLinuxMount", False),
        *((("preventPodSchedulingIfMissing", False),) if feature_gates.enabled(_VOLUME_LIMITS) else ()),
    ):
        if spec.get(key) is None:
            spec[key] = value
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def validate(obj: Object) -> list[FieldError]:
    """Validate the spec of a new or updated CSIDriver.

    Fields with a default are required. Policies and modes are known. Audiences of tokenRequests are unique, and their
    tokens live at least 10 minutes.
    """
    spec = obj.get("spec") or {}
    errors = [field.required(f"spec.{name}") for name in _FLAGS if spec.get(name) is None]
    if (policy := spec.get("fsGroupPolicy")) is None:
        errors.append(field.required("spec.fsGroupPolicy"))
    else:
        errors += known(policy, _GROUP_POLICIES, "spec.fsGroupPolicy")
    errors += _token_requests(spec.get("tokenRequests") or [])
    for mode in spec.get("volumeLifecycleModes") or ():
        errors += known(mode, _LIFECYCLE, "spec.volumeLifecycleModes")
    return errors + _driver_rest(spec)


def _driver_rest(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    period, secrets = spec.get("nodeAllocatableUpdatePeriodSeconds"), spec.get("serviceAccountTokenInSecrets")
    if period is not None and period < _SHORTEST_PERIOD:
        text = f"must be greater than or equal to {_SHORTEST_PERIOD} seconds"
        errors.append(field.invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, text))
    if secrets is not None and not spec.get("tokenRequests"):
        errors.append(field.invalid("spec.serviceAccountTokenInSecrets", secrets, _UNSET))
    return errors


def _token_requests(requests: list[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, request in enumerate(requests):
        audience, seconds, path = (
            request.get("audience") or "",
            request.get("expirationSeconds"),
            f"spec.tokenRequests[{i}]",
        )
        if audience in seen:
            errors.append(field.duplicate(f"{path}.audience", audience))
            continue
        seen.add(audience)
        if seconds is None:
            continue
        if seconds < _LEAST_EXPIRATION:
            text = "may not specify a duration less than 10 minutes"
            errors.append(field.invalid(f"{path}.expirationSeconds", seconds, text))
        if seconds > _LONGEST_EXPIRATION:
            text = "may not specify a duration larger than 2^32 seconds"
            errors.append(field.invalid(f"{path}.expirationSeconds", seconds, text))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated CSIDriver as a new one; attachRequired and volumeLifecycleModes are immutable."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    errors = validate(new)
    errors += immutable(spec.get("attachRequired"), old_spec.get("attachRequired"), "spec.attachedRequired")
    return errors + immutable(
        spec.get("volumeLifecycleModes"), old_spec.get("volumeLifecycleModes"), "spec.volumeLifecycleModes"
    )


def warnings(new: Object, old: Object | None) -> list[str]:
    """Return a warning if tokenRequests is set (or changed) and serviceAccountTokenInSecrets is unset.

    Args:
        old: the stored object; None on create.
    """
    spec = new.get("spec") or {}
    if not spec.get("tokenRequests") or spec.get("serviceAccountTokenInSecrets") is not None:
        return []
    if old is not None and spec["tokenRequests"] == (old.get("spec") or {}).get("tokenRequests"):
        return []
    return [
        "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true"
        " to prevent possible logging of tokens in volume attributes"
    ]


def _row(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    audiences = [t.get("audience", "") for t in spec.get("tokenRequests") or []]
    return [
        name_of(obj),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        ",".join(audiences) or UNSET,
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes") or []) or NONE,
        age(obj),
    ]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("AttachRequired", "boolean"),
        Column("PodInfoOnMount", "boolean"),
        Column("StorageCapacity", "boolean"),
        Column("TokenRequests"),
        Column("RequiresRepublish", "boolean"),
        Column("Modes"),
        AGE,
    ),
    _row,
)
