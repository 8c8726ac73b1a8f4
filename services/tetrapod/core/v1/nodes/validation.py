"""Validation of Node.

Some error paths start with metadata although the field is in spec, as upstream's do.

Upstream: pkg/apis/core/validation/validation.go, ValidateNode and ValidateNodeUpdate.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from tetrapod.core.podspec.scheduling import TAINT_EFFECTS
from tetrapod.core.validation import declared, quantities
from tetrapod.core.validation.declared import Field, Type
from tetrapod.core.validation.differences import internal
from tetrapod.core.validation.names import known, network
from tetrapod.machinery import field
from tetrapod.machinery.equality import repeated
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.ip_addresses import parse_cidr_sloppy
from tetrapod.machinery.golang.json_syntax import explain
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import validate_label_name
from tetrapod.machinery.names import DNS1123_SUBDOMAIN_MAX, is_valid_label_value

_TAINTS: Final = "scheduler.alpha.kubernetes.io/taints"
_AVOID_PODS: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_feature = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z0-9]+)*").fullmatch
_FEATURE: Final = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/'"
    " (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)
_CIDRS: Final = "spec.podCIDRs"
_ONCE: Final = 'node updates may not change podCIDR except from "" to valid'


def _label_keys(keys: list[str], stored: Any, path: str) -> list[FieldError]:
    """Validate a list of keys of labels, which are unique. It is a `Check`; `stored` is not used."""
    errors = [error for i, key in enumerate(keys) for error in declared.label_key(key, None, f"{path}[{i}]")]
    return errors + [field.duplicate(f"{path}[{i}]", keys[i]) for i in sorted(repeated(keys))]


_PREEMPTION: Final = Type({"disableResizePreemption": Field((_label_keys,), max_items=20)})
_SPEC: Final = Type(
    {"podPreemptionPolicy": Field(type=_PREEMPTION, gate="InPlacePodVerticalScalingSchedulerPreemption")}
)


def validate(obj: Object) -> list[FieldError]:
    """Validate a new Node.

    Taints are valid, also those in an annotation. Quantities in capacity and allocatable are not negative.
    declaredFeatures is sorted without duplicates. podCIDRs has at most one CIDR for each IP family, and
    podPreemptionPolicy has the keys of labels.
    """
    spec = obj.get("spec") or {}
    return _hand_written(obj) + declared.validate(_SPEC, spec, None, "spec", update=False)


def _hand_written(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = (
        _annotations(obj)
        + taints(spec.get("taints") or [], "metadata.taints")
        + _resources(obj)
        + _swap(obj)
        + _declared_features(obj)
    )
    return errors + _pod_networks(spec.get("podCIDRs") or [])


def _swap(obj: Object) -> list[FieldError]:
    """Validate the capacity of swap, which a Node reports. The path in the error is upstream's."""
    swap = ((obj.get("status") or {}).get("nodeInfo") or {}).get("swap") or {}
    capacity = swap.get("capacity")
    if capacity is None or capacity > 0:
        return []
    return [field.invalid("metadata.nodeSwapStatus.capacity", capacity, "must be greater than zero")]


def _annotations(obj: Object) -> list[FieldError]:
    annotations = obj["metadata"].get("annotations") or {}
    errors: list[FieldError] = []
    if taints_json := annotations.get(_TAINTS):
        if detail := explain(taints_json.encode()):
            errors.append(field.invalid("metadata.annotations", _TAINTS, detail))
        elif isinstance(listed := json.loads(taints_json), list):
            errors += taints(listed, f"metadata.annotations.{_TAINTS}")
    if avoid_pods_json := annotations.get(_AVOID_PODS):
        if detail := explain(avoid_pods_json.encode()):
            errors.append(field.invalid("metadata.annotations.AvoidPods", _AVOID_PODS, detail))
        else:
            errors += _avoided_pods(json.loads(avoid_pods_json), f"metadata.annotations.{_AVOID_PODS}")
    return errors


def _avoided_pods(avoid_pods: Any, path: str) -> list[FieldError]:
    """Validate the entries of AvoidPods: each names the controller of the pods that the node does not prefer.

    Args:
        avoid_pods: the decoded annotation.
        path: the field path of the entries, for errors.
    """
    entries = avoid_pods.get("preferAvoidPods") if isinstance(avoid_pods, dict) else None
    errors: list[FieldError] = []
    for i, entry in enumerate(entries if isinstance(entries, list) else ()):
        at = f"{path}[{i}].PodSignature"
        controller = ((entry or {}).get("podSignature") or {}).get("podController")
        if controller is None:
            errors.append(field.required(at))
        elif controller.get("controller") is False:
            errors.append(field.invalid(f"{at}.PodController.Controller", False, "must point to a controller"))
    return errors


def taints(listed: list[Object], path: str) -> list[FieldError]:
    """Validate node taints.

    Keys are label names, values are label values, and effects are known. Taints are unique by key and effect.

    Args:
        path: the field path of the list, for errors.
    """
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(listed):
        at, key, effect = f"{path}[{i}]", taint.get("key") or "", taint.get("effect") or ""
        errors += validate_label_name(key, f"{at}.key")
        if texts := is_valid_label_value(taint.get("value") or ""):
            errors.append(field.invalid(f"{at}.value", taint["value"], ";".join(texts)))
        errors += known(effect, TAINT_EFFECTS, f"{at}.effect") if effect else [field.required(f"{at}.effect")]
        if (key, effect) in seen:
            text = "taints must be unique by key and effect pair"
            errors.append(FieldError("FieldValueDuplicate", at, text, internal("Taint", taint)))
        seen.add((key, effect))
    return errors


def _resources(obj: Object) -> list[FieldError]:
    status = obj.get("status") or {}
    errors: list[FieldError] = []
    for part in ("capacity", "allocatable"):
        for name, value in (status.get(part) or {}).items():
            errors += quantities.amount(name, quantities.quantity(value), f"status.{part}.{name}")
    return errors


def _pod_networks(cidrs: list[str]) -> list[FieldError]:
    errors = [error for i, cidr in enumerate(cidrs) for error in network(cidr, f"{_CIDRS}[{i}]")]
    if len(cidrs) < 2:
        return errors
    both, error_text = _dual_stack(cidrs)
    if error_text:
        errors.append(
            field.internal_error(_CIDRS, f"invalid PodCIDRs. failed to check with dual stack with error:{error_text}")
        )
    if not both or len(cidrs) > 2:
        errors.append(field.invalid(_CIDRS, cidrs, "may specify no more than one CIDR for each IP family"))
    return errors


def _dual_stack(cidrs: list[str]) -> tuple[bool, str]:
    versions = set()
    for i, cidr in enumerate(cidrs):
        parsed = parse_cidr_sloppy(cidr)
        if parsed is None:
            return False, f"invalid CIDR[{i}]: <nil> (invalid CIDR address: {cidr})"
        versions.add(parsed[1].version)
    return len(versions) == 2, ""


def _declared_features(obj: Object) -> list[FieldError]:
    listed = (obj.get("status") or {}).get("declaredFeatures") or []
    errors: list[FieldError] = []
    for i, name in enumerate(listed):
        at = f"status.declaredFeatures[{i}]"
        if i and name == listed[i - 1]:
            errors.append(field.duplicate(at, name))
        elif i and name < listed[i - 1]:
            errors.append(field.invalid(at, name, "list must be sorted alphabetically"))
        if len(name.encode()) > DNS1123_SUBDOMAIN_MAX:
            text = f"must be no more than {DNS1123_SUBDOMAIN_MAX} characters"
            errors.append(field.invalid(at, name, f"invalid feature name {go_quote(name)}: {text}"))
        elif not _feature(name):
            errors.append(field.invalid(at, name, f"invalid feature name {go_quote(name)}: {_FEATURE}"))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated Node: the rules for a new one and then those of `validate_status`."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    errors = _hand_written(new) + validate_status(new, old)
    return errors + declared.validate(_SPEC, spec, old_spec, "spec", update=True)


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the rules for every update of a Node, of its status too.

    podCIDRs and providerID cannot change once set, and externalID never. Addresses must not repeat. Annotations,
    taints, quantities and declared features are validated as on create.

    Upstream: pkg/apis/core/validation/validation.go, ValidateNodeUpdate
    """
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    errors = _annotations(new) + _resources(new) + _declared_features(new)
    addresses = [internal("NodeAddress", address) for address in (new.get("status") or {}).get("addresses") or ()]
    errors += [field.duplicate(f"status.addresses[{i}]", addresses[i]) for i in sorted(repeated(addresses))]
    old_cidrs, new_cidrs = old_spec.get("podCIDRs") or [], spec.get("podCIDRs") or []
    if old_cidrs and len(old_cidrs) != len(new_cidrs):
        errors.append(field.forbidden(_CIDRS, _ONCE))
    elif old_cidrs:
        errors += [
            field.forbidden(_CIDRS, _ONCE)
            for old_cidr, cidr in zip(old_cidrs, new_cidrs, strict=True)
            if old_cidr != cidr
        ]
    errors += taints(spec.get("taints") or [], "metadata.taints")
    if (spec.get("externalID") or "") != (old_spec.get("externalID") or ""):
        errors.append(field.forbidden("spec.externalID", "may not be updated"))
    if old_spec.get("providerID") and old_spec["providerID"] != (spec.get("providerID") or ""):
        change = "modified" if spec.get("providerID") else "cleared"
        errors.append(field.invalid("spec.providerID", None, f"field cannot be {change} once set"))
    return errors
