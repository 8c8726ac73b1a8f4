"""Validation of roles and bindings, with upstream's texts and order (pkg/apis/rbac/validation/validation.go).

Missing verbs, subject names and role names come last, because upstream validates them declaratively.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tetrapod.generic.authorization.rbac_storage import RBAC_GROUP
from tetrapod.machinery import field, labels
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import name_is_dns_subdomain, name_is_path_segment

_SUBJECT_KINDS: Final = ("ServiceAccount", "User", "Group")
_NO_ROLE: Final = field.required("roleRef.name")


def validate_role(role: Object, *, namespaced: bool) -> list[FieldError]:
    """Validate a Role or ClusterRole.

    Each rule has verbs, and either API groups with resources or, in a ClusterRole, nonResourceURLs. An aggregationRule
    has valid selectors.

    Args:
        namespaced: True for a Role.
    """
    rules = role.get("rules") or []
    errors = [
        error for i, rule in enumerate(rules) for error in _rule_errors(rule, namespaced, field.index("rules", i))
    ]
    if role.get("aggregationRule") is not None:
        errors += _aggregation_errors(role["aggregationRule"].get("clusterRoleSelectors") or [])
    return errors + [field.required(f"rules[{i}].verbs") for i, rule in enumerate(rules) if not rule.get("verbs")]


def _rule_errors(rule: Object, namespaced: bool, path: str) -> list[FieldError]:
    urls = rule.get("nonResourceURLs")
    if urls:
        errors = []
        if namespaced:
            errors.append(
                field.invalid(f"{path}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")
            )
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            text = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(field.invalid(f"{path}.nonResourceURLs", urls, text))
        return errors
    errors = []
    if not rule.get("apiGroups"):
        errors.append(field.required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        errors.append(field.required(f"{path}.resources", "resource rules must supply at least one resource"))
    return errors


def _aggregation_errors(selectors: Sequence[Object]) -> list[FieldError]:
    path = "aggregationRule.clusterRoleSelectors"
    if not selectors:
        return [field.required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")]
    errors: list[FieldError] = []
    for i, selector in enumerate(selectors):
        errors += labels.validate_label_selector(selector, field.index(path, i))
        try:
            labels.from_label_selector(selector)
        except ValueError:
            errors.append(field.invalid(field.index(path, i), None, "invalid label selector."))
    return errors


def validate_binding(binding: Object, *, namespaced: bool) -> list[FieldError]:
    """Validate a RoleBinding or ClusterRoleBinding.

    roleRef names a ClusterRole or, in a RoleBinding, a Role. Each subject has a known kind with its API group, and a
    name; service accounts in a ClusterRoleBinding also have a namespace.

    Args:
        namespaced: True for a RoleBinding.
    """
    errors = _binding_errors(binding, namespaced) + _unnamed_subjects(binding)
    return errors if (binding.get("roleRef") or {}).get("name") else [*errors, _NO_ROLE]


def _binding_errors(binding: Object, namespaced: bool) -> list[FieldError]:
    """Return the errors whose rules upstream does not declare in the schema."""
    errors = _role_ref_errors(binding.get("roleRef") or {}, namespaced)
    for i, subject in enumerate(binding.get("subjects") or []):
        errors += _subject_errors(subject, namespaced, field.index("subjects", i))
    return errors


def _unnamed_subjects(binding: Object) -> list[FieldError]:
    return [
        field.required(f"subjects[{i}].name")
        for i, subject in enumerate(binding.get("subjects") or [])
        if not subject.get("name")
    ]


def _role_ref_errors(ref: Object, namespaced: bool) -> list[FieldError]:
    errors = []
    group, kind, name = ref.get("apiGroup", ""), ref.get("kind", ""), ref.get("name", "")
    if group != RBAC_GROUP:
        errors.append(field.not_supported("roleRef.apiGroup", group, [RBAC_GROUP], typed=False))
    kinds = ["Role", "ClusterRole"] if namespaced else ["ClusterRole"]
    if kind not in kinds:
        errors.append(field.not_supported("roleRef.kind", kind, kinds, typed=False))
    return errors + [field.invalid("roleRef.name", name, text) for text in name_is_path_segment(name, False) if name]


def _subject_errors(subject: Object, namespaced: bool, path: str) -> list[FieldError]:
    kind, name, group = subject.get("kind", ""), subject.get("name", ""), subject.get("apiGroup") or ""
    if kind not in _SUBJECT_KINDS:
        return [field.not_supported(f"{path}.kind", kind, _SUBJECT_KINDS, typed=False)]
    if kind != "ServiceAccount":
        return (
            [] if group == RBAC_GROUP else [field.not_supported(f"{path}.apiGroup", group, [RBAC_GROUP], typed=False)]
        )
    errors = [field.invalid(f"{path}.name", name, text) for text in name_is_dns_subdomain(name, False) if name]
    if group:
        errors.append(field.not_supported(f"{path}.apiGroup", group, [""], typed=False))
    if not namespaced and not subject.get("namespace"):
        errors.append(field.required(f"{path}.namespace"))
    return errors


def validate_binding_update(new: Object, old: Object, *, namespaced: bool) -> list[FieldError]:
    """Validate an updated RoleBinding or ClusterRoleBinding as a new one; its roleRef is immutable.

    Args:
        namespaced: True for a RoleBinding.
    """
    ref = new.get("roleRef") or {}
    if ref == (old.get("roleRef") or {}):
        return validate_binding(new, namespaced=namespaced)
    # The declared rule that roleRef is immutable keeps the one about its name from being evaluated, so upstream's
    # hand-written error remains, in its own place.
    errors = _binding_errors(new, namespaced)
    if not ref.get("name"):
        errors.insert(sum(error.field.startswith("roleRef") for error in errors), _NO_ROLE)
    return [*errors, field.invalid("roleRef", _internal(ref), "field is immutable"), *_unnamed_subjects(new)]


def _internal(ref: Object) -> dict[str, Any]:
    """Return a roleRef with the Go field names of upstream's internal struct, which errors print."""
    return {"APIGroup": ref.get("apiGroup", ""), "Kind": ref.get("kind", ""), "Name": ref.get("name", "")}
