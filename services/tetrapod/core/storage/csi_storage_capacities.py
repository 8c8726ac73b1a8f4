"""The definition of CSIStorageCapacities, with their validation and warnings.

Upstream: pkg/registry/storage/csistoragecapacity/strategy.go and pkg/apis/storage/validation.
"""

from __future__ import annotations

from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.podspec.claim_spec import label_selector
from tetrapod.core.podspec.label_warnings import deprecated_label
from tetrapod.core.validation import differences, quantities
from tetrapod.core.validation.names import dns_subdomain, immutable
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery import go_structs
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object


def definition() -> ResourceDefinition:
    """Return the resource definition of CSIStorageCapacities: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        validator=validate,
        whole_update_validator=validate_update,
        revalidates_generate_name="after finalizers",
        warnings=warnings,
        allow_unconditional_update=False,
    )
    return builtin("storage.k8s.io", "csistoragecapacities", strategy)


def validate(obj: Object) -> list[FieldError]:
    """Validate a new CSIStorageCapacity.

    nodeTopology is a valid selector, storageClassName a DNS subdomain, and capacity, if it is set, not negative.
    """
    return _errors(obj, None)


def _errors(obj: Object, stored_topology: Object | None) -> list[FieldError]:
    """Return the errors of a capacity.

    Args:
        obj: the capacity.
        stored_topology: the stored nodeTopology; None on create. If it is invalid, invalid values are accepted.
    """
    errors = label_selector(obj.get("nodeTopology"), "nodeTopology", stored_topology)
    errors += dns_subdomain(obj.get("storageClassName") or "", "storageClassName")
    if (capacity := obj.get("capacity")) is not None:
        errors += quantities.not_negative(quantities.quantity(capacity), "capacity")
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated CSIStorageCapacity, whose nodeTopology and storageClassName are immutable."""
    topology, name = new.get("nodeTopology"), new.get("storageClassName") or ""
    errors = _errors(new, old.get("nodeTopology"))
    errors += differences.immutable(topology, old.get("nodeTopology"), "nodeTopology", go_structs.selector(topology))
    return errors + immutable(name, old.get("storageClassName") or "", "storageClassName")


def warnings(obj: Object, old: Object | None) -> list[str]:
    """Return a warning for each deprecated label in the node topology. The stored object is not used."""
    topology = obj.get("nodeTopology") or {}
    warnings = [
        f"nodeTopology.matchLabels.{key}: {text}"
        for key in topology.get("matchLabels") or ()
        if (text := deprecated_label(key))
    ]
    for i, expression in enumerate(topology.get("matchExpressions") or ()):
        if text := deprecated_label(expression.get("key") or ""):
            warnings.append(f"nodeTopology.matchExpressions[{i}].key: {text}")
    return warnings
