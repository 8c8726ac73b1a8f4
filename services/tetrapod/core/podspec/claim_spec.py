"""Specs of PersistentVolumeClaims, which ephemeral volumes and StatefulSets hold too: defaults, validation, warnings.

Upstream: pkg/apis/core/validation/validation.go, ValidatePersistentVolumeClaimSpec;
pkg/apis/core/v1/defaults.go, SetDefaults_PersistentVolumeClaimSpec.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.podspec.pod_resources import round_requirements
from tetrapod.core.podspec.volume_warnings import fractional
from tetrapod.core.validation import quantities
from tetrapod.core.validation.names import dns_subdomain, known
from tetrapod.core.validation.quantities import quantity
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import validate_label_selector, validate_labels
from tetrapod.machinery.metadata import FIELD_ORDER, validate_annotations
from tetrapod.machinery.names import name_is_dns_label

ACCESS_MODES: Final = frozenset({"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"})
VOLUME_MODES: Final = frozenset({"Block", "Filesystem"})


BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
ATTRIBUTES_GATE: Final = "VolumeAttributesClass"


_PASSED_ON = frozenset({"annotations", "labels"})


def access_modes(modes: list[str], path: str) -> list[FieldError]:
    """Validate access modes; ReadWriteOncePod cannot be combined with other modes. An empty list is accepted.

    Args:
        path: the field path of the list, for the errors.
    """
    errors: list[FieldError] = []
    for mode in modes:
        errors += known(mode, ACCESS_MODES, path)
    if "ReadWriteOncePod" in modes and ACCESS_MODES.intersection(modes) - {"ReadWriteOncePod"}:
        errors.append(field.forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def claim_spec(spec: Object, path: str, *, template: bool = False, stored: Object | None = None) -> list[FieldError]:
    """Validate the spec of a claim or of a claim template.

    - At least one access mode and a positive storage request are required.
    - The selector and the names of classes are valid, and volumeMode is known.
    - dataSource and dataSourceRef are valid and do not contradict each other.

    Args:
        path: the field path of the spec, for the errors.
        template: whether it is the spec of a template. Without the gate VolumeAttributesClass, the name of such a class
            is not validated, because claims lose it.
        stored: the stored spec of an updated claim. If its selector is invalid, invalid values in the new one are
            accepted, and if its data sources have API groups, invalid ones are.
    """
    modes = spec.get("accessModes") or []
    errors = [] if modes else [field.required(f"{path}.accessModes", "at least 1 access mode is required")]
    errors += label_selector(spec.get("selector"), f"{path}.selector", (stored or {}).get("selector"))
    errors += access_modes(modes, f"{path}.accessModes")
    errors += _storage(
        ((spec.get("resources") or {}).get("requests") or {}).get("storage"), f"{path}.resources[storage]"
    )
    if name := spec.get("storageClassName"):
        errors += dns_subdomain(name, f"{path}.storageClassName")
    if (mode := spec.get("volumeMode")) is not None:
        errors += known(mode, VOLUME_MODES, f"{path}.volumeMode")
    groups = (((stored or {}).get(name) or {}).get("apiGroup") for name in ("dataSource", "dataSourceRef"))
    errors += _data_sources(spec, path, any_group=any(group is not None for group in groups))
    name = spec.get("volumeAttributesClassName")
    if name and (not template or feature_gates.enabled(ATTRIBUTES_GATE)):
        errors += dns_subdomain(name, f"{path}.volumeAttributesClassName")
    return errors


def label_selector(selector: Object | None, path: str, stored: Object | None) -> list[FieldError]:
    """Validate a label selector. If the stored one is invalid, invalid values are accepted.

    Args:
        selector: the new selector.
        path: its field path, for the errors.
        stored: the selector of the stored object; None on create.
    """
    errors = validate_label_selector(selector, path)
    if errors and validate_label_selector(stored, path):
        return validate_label_selector(selector, path, allow_invalid_values=True)
    return errors


def unchanged_attributes_class(spec: Object, old_spec: Object) -> list[FieldError]:
    """Reject a change of volumeAttributesClassName of a claim or volume without the gate VolumeAttributesClass.

    Args:
        spec: the new spec.
        old_spec: the stored one.
    """
    name = "volumeAttributesClassName"
    if spec.get(name) == old_spec.get(name) or feature_gates.enabled(ATTRIBUTES_GATE):
        return []
    text = f"update is forbidden when the {ATTRIBUTES_GATE} feature gate is disabled"
    return [field.forbidden(f"spec.{name}", text)]


def _storage(value: Any, path: str) -> list[FieldError]:
    if value is None:
        return [field.required(path)]
    size = quantity(value)
    return quantities.positive(size, path) or quantities.amount("storage", size, path)


def _data_sources(spec: Object, path: str, *, any_group: bool) -> list[FieldError]:
    source, ref = spec.get("dataSource"), spec.get("dataSourceRef")
    errors: list[FieldError] = []
    if source is not None:
        errors += _data_source(source, f"{path}.dataSource", any_group)
    if ref is not None:
        errors += _data_source(ref, f"{path}.dataSourceRef", any_group)
        if namespace := ref.get("namespace"):
            at = f"{path}.dataSourceRef.namespace"
            errors += [field.invalid(at, namespace, text) for text in name_is_dns_label(namespace, False)]
    if source is None or ref is None:
        return errors
    if ref.get("namespace"):  # upstream passes a field.Path as the value, which prints as {}
        errors.append(field.invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified"))
    elif any(source.get(key) != ref.get(key) for key in ("apiGroup", "kind", "name")):
        errors.append(field.invalid(path, {}, "must match dataSourceRef"))
    return errors


def _data_source(source: Object, path: str, any_group: bool) -> list[FieldError]:
    errors = [field.required(f"{path}.{key}") for key in ("name", "kind") if not source.get(key)]
    group, kind = source.get("apiGroup") or "", source.get("kind") or ""
    if not group and kind != "PersistentVolumeClaim":
        errors.append(
            field.invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
        )
    return errors + (dns_subdomain(group, f"{path}.apiGroup") if group and not any_group else [])


def default_claim_spec(spec: Object) -> None:
    """Set the defaults of a PersistentVolumeClaimSpec in place: volumeMode Filesystem, and rounded quantities."""
    if spec.get("volumeMode") is None:
        spec["volumeMode"] = "Filesystem"
    if resources := spec.get("resources"):
        round_requirements(resources)


def claim_spec_warnings(spec: Object, path: str) -> list[str]:
    """Return warnings about storage requests and limits in a claim spec or template that are not whole bytes.

    Args:
        path: the field path of the spec, for the warnings.
    """
    resources = spec.get("resources") or {}
    out: list[str] = []
    for part in ("requests", "limits"):
        out += fractional((resources.get(part) or {}).get("storage"), f"{path}.resources.{part}[storage]")
    return out


def template_metadata(meta: Object, path: str) -> list[FieldError]:
    """Validate the labels and annotations of a claim template, and reject all other metadata, even empty lists.

    Args:
        path: the field path of the metadata, for the errors.
    """
    errors = validate_annotations(meta.get("annotations"), f"{path}.annotations") + validate_labels(
        meta.get("labels"), f"{path}.labels"
    )
    return errors + [
        # Upstream prints the Go field name with a lower-case first letter, hence "uID".
        field.forbidden(f"{path}.{'uID' if key == 'uid' else key}", "cannot be set")
        for key in FIELD_ORDER
        if key not in _PASSED_ON and not _is_zero(key, meta.get(key))
    ]


def _is_zero(name: str, value: Any) -> bool:
    """Return whether a field of metadata has Go's zero value. The grace period is a pointer; lists are slices."""
    return value is None or value == "" or (name == "generation" and value == 0)
