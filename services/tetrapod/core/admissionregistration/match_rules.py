"""Validation of the rules, selectors and match conditions that decide which requests a webhook or policy receives.

Upstream: pkg/apis/admissionregistration/validation.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.admissionregistration.expressions import match_condition
from tetrapod.core.validation.names import errors_from, known
from tetrapod.machinery import field
from tetrapod.machinery.equality import repeated
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import validate_label_selector
from tetrapod.machinery.names import is_path_segment_name, is_qualified_name

OPERATIONS: Final = frozenset({"*", "CREATE", "UPDATE", "DELETE", "CONNECT"})
FAILURE_POLICIES: Final = frozenset({"Ignore", "Fail"})
MATCH_POLICIES: Final = frozenset({"Exact", "Equivalent"})
_SCOPES: Final = frozenset({"Cluster", "Namespaced", "*"})
_MOST_CONDITIONS: Final = 64
STATIC_SUFFIX: Final = ".static.k8s.io"


def reserved_name(obj: Object) -> list[FieldError]:
    """Return an error if the object's name ends with `.static.k8s.io`, else [].

    Such names are reserved for objects in manifests that a server reads at startup.
    """
    name = obj["metadata"].get("name") or ""
    text = (
        f'names ending with "{STATIC_SUFFIX}" are reserved for static manifest-based configurations and cannot be '
        "managed via the API"
    )
    return [field.invalid("metadata.name", name, text)] if name.endswith(STATIC_SUFFIX) else []


def rule(given: Object, path: str) -> list[FieldError]:
    """Validate a rule of a webhook or policy.

    Operations, API groups, API versions and resources are not empty, and `*` is the only element of its list.
    Operations and the scope, if it is set, are known.

    Args:
        given: the rule.
        path: its field path, for the errors.
    """
    listed, errors = given.get("operations") or [], []
    if not listed:
        errors.append(field.required(f"{path}.operations"))
    if len(listed) > 1 and "*" in listed:
        errors.append(
            field.invalid(f"{path}.operations", listed, "if '*' is present, must not specify other operations")
        )
    for i, operation in enumerate(listed):
        errors += known(operation, OPERATIONS, f"{path}.operations[{i}]")
    return errors + _resources(given, path)


def _resources(given: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, text in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        listed = given.get(key) or []
        if not listed:
            errors.append(field.required(f"{path}.{key}"))
        if len(listed) > 1 and "*" in listed:
            errors.append(field.invalid(f"{path}.{key}", listed, f"if '*' is present, must not specify other {text}"))
    errors += [
        field.required(f"{path}.apiVersions[{i}]")
        for i, version in enumerate(given.get("apiVersions") or ())
        if not version
    ]
    errors += _named(given.get("resources") or [], f"{path}.resources")
    scope = given.get("scope")
    return errors + (known(scope, _SCOPES, f"{path}.scope") if scope is not None else [])


def _named(resources: list[str], path: str) -> list[FieldError]:
    """Validate a rule's resources (`name` or `name/subresource`).

    An entry that a wildcard in the list already covers is rejected.

    Args:
        path: the field path of the list, for the errors.
    """
    if not resources:
        return [field.required(path)]
    errors: list[FieldError] = []
    all_parts: set[str] = set()  # resources listed as `resource/*`
    all_resources: set[str] = set()  # subresources listed as `*/subresource`
    for i, name in enumerate(resources):
        resource, slash, part = name.partition("/")
        at = f"{path}[{i}]"
        if not name:
            errors.append(field.required(at))
        if not slash:
            continue
        if resource in all_parts:
            errors.append(field.invalid(at, name, f"if '{resource}/*' is present, must not specify {name}"))
        if part in all_resources:
            errors.append(field.invalid(at, name, f"if '*/{part}' is present, must not specify {name}"))
        if part == "*":
            all_parts.add(resource)
        if resource == "*":
            all_resources.add(part)
    if "*/*" in resources and len(resources) > 1:
        errors.append(field.invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and any(name and "/" not in name and name != "*" for name in resources):
        text = "if '*' is present, must not specify other resources without subresources"
        errors.append(field.invalid(path, resources, text))
    return errors


def match_resources(given: Object, path: str) -> list[FieldError]:
    """Validate the MatchResources of a policy (matchConstraints) or binding.

    The match policy and both selectors are required. Each rule follows `rule`, and its resource names are valid and
    unique.

    Args:
        given: the MatchResources.
        path: its field path, for the errors.
    """
    errors: list[FieldError] = []
    policy = given.get("matchPolicy")
    errors += (
        [field.required(f"{path}.matchPolicy")]
        if policy is None
        else known(policy, MATCH_POLICIES, f"{path}.matchPolicy")
    )
    for key in ("namespaceSelector", "objectSelector"):
        selector = given.get(key)
        errors += (
            [field.required(f"{path}.{key}")]
            if selector is None
            else validate_label_selector(selector, f"{path}.{key}")
        )
    for key in ("resourceRules", "excludeResourceRules"):
        for i, item in enumerate(given.get(key) or ()):
            at = f"{path}.{key}[{i}]"
            errors += _resource_names(item.get("resourceNames") or [], f"{at}.resourceNames")
            errors += rule(item, at)
    return errors


def _resource_names(names: list[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    repeated_indexes = repeated(names)
    for i, name in enumerate(names):
        errors += errors_from(is_path_segment_name, name, f"{path}[{i}]")
        if i in repeated_indexes:
            errors.append(field.duplicate(f"{path}[{i}]", name))
    return errors


def match_conditions(listed: list[Object], path: str, *, params: bool = False) -> list[FieldError]:
    """Validate match conditions: at most 64, each with a unique name and an expression that compiles.

    Args:
        listed: the conditions.
        path: the field path of the list, for the errors.
        params: whether the expressions may use the variable `params`.
    """
    errors = [field.too_many(path, len(listed), _MOST_CONDITIONS)] if len(listed) > _MOST_CONDITIONS else []
    seen: set[str] = set()
    for i, condition in enumerate(listed):
        at, name = f"{path}[{i}]", condition.get("name") or ""
        if not (condition.get("expression") or "").strip():
            errors.append(field.required(f"{at}.expression"))
        else:
            errors += match_condition(condition, f"{at}.expression", params=params)
        errors += errors_from(is_qualified_name, name, f"{at}.name") if name else [field.required(f"{at}.name")]
        if name and name in seen:
            errors.append(field.duplicate(f"{at}.name", name))
        seen.add(name)
    return errors
