"""Node (upstream: ValidateNode, ValidateNodeUpdate). Some paths name metadata where spec is meant; they are upstream's."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from tetrapod.core.validation import quantities
from tetrapod.core.validation.differences import internal
from tetrapod.core.validation.names import known, network
from tetrapod.core.validation.scheduling import TAINT_EFFECTS
from tetrapod.machinery import field
from tetrapod.machinery.addresses import parse_cidr_sloppy
from tetrapod.machinery.field import FieldError, go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import validate_label_name
from tetrapod.machinery.names import DNS1123_SUBDOMAIN_MAX, is_valid_label_value
from tetrapod.machinery.serializer.syntax import explain

_TAINTS: Final = "scheduler.alpha.kubernetes.io/taints"
_AVOID_PODS: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_feature = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z0-9]+)*").fullmatch
_FEATURE: Final = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/'"
    " (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)
_CIDRS: Final = "spec.podCIDRs"
_ONCE: Final = 'node updates may not change podCIDR except from "" to valid'


def validate(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = _annotations(obj) + taints(spec.get("taints") or [], "metadata.taints") + _resources(obj) + _declared_features(obj)
    return errors + _pod_networks(spec.get("podCIDRs") or [])


def _annotations(obj: Object) -> list[FieldError]:
    found = obj["metadata"].get("annotations") or {}
    errors: list[FieldError] = []
    if written := found.get(_TAINTS):
        if wrong := explain(written.encode()):
            errors.append(field.invalid("metadata.annotations", _TAINTS, wrong))
        elif isinstance(listed := json.loads(written), list):
            errors += taints(listed, f"metadata.annotations.{_TAINTS}")
    if (content := found.get(_AVOID_PODS)) and (wrong := explain(content.encode())):
        errors.append(field.invalid("metadata.annotations.AvoidPods", _AVOID_PODS, wrong))
    return errors


def taints(listed: list[Object], path: str) -> list[FieldError]:
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
    both, why = _dual_stack(cidrs)
    if why:
        errors.append(field.internal_error(_CIDRS, f"invalid PodCIDRs. failed to check with dual stack with error:{why}"))
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
    return validate(new) + validate_status(new, old)


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Every update's, one of the status too (upstream: ValidateNodeUpdate)."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    errors = _annotations(new) + _resources(new) + _declared_features(new)
    seen: list[Any] = []
    for i, address in enumerate((new.get("status") or {}).get("addresses") or ()):
        shown = internal("NodeAddress", address)
        if shown in seen:
            errors.append(field.duplicate(f"status.addresses[{i}]", shown))
        seen.append(shown)
    had, now = before.get("podCIDRs") or [], spec.get("podCIDRs") or []
    if had and len(had) != len(now):
        errors.append(field.forbidden(_CIDRS, _ONCE))
    elif had:
        errors += [field.forbidden(_CIDRS, _ONCE) for was, cidr in zip(had, now, strict=True) if was != cidr]
    errors += taints(spec.get("taints") or [], "metadata.taints")
    if (spec.get("externalID") or "") != (before.get("externalID") or ""):
        errors.append(field.forbidden("spec.externalID", "may not be updated"))
    if before.get("providerID") and before["providerID"] != (spec.get("providerID") or ""):
        what = "modified" if spec.get("providerID") else "cleared"
        errors.append(field.invalid("spec.providerID", None, f"field cannot be {what} once set"))
    return errors
