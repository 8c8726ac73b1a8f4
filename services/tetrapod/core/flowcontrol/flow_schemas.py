"""The definition of FlowSchemas, with their defaults, validation and table columns.

Upstream: pkg/registry/flowcontrol/flowschema/strategy.go and pkg/apis/flowcontrol/validation.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Final

import orjson

from tetrapod.core.cells import AGE, NAME, NONE, age, name_of, spec_of, status_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.validation.differences import internal
from tetrapod.core.validation.names import dns_subdomain, errors_from
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import WHOLE_METADATA, StatusStrategy
from tetrapod.machinery import field
from tetrapod.machinery.equality import repeated
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1123_subdomain, validate_namespace_name
from tetrapod.machinery.table import Column, TableConvertor

_LAST: Final = 10_000
_DISTINGUISHERS: Final = frozenset({"ByUser", "ByNamespace"})
_SUBJECTS: Final = {"User": "user", "Group": "group", "ServiceAccount": "serviceAccount"}
_VERBS: Final = frozenset({"get", "list", "create", "update", "delete", "deletecollection", "patch", "watch", "proxy"})


def definition() -> ResourceDefinition:
    """Return the resource definition of FlowSchemas: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        defaults=set_defaults,
        validator=validate,
        has_status=True,
        generation=("spec",),
        revalidates_generate_name="before finalizers",
    )
    status = StatusStrategy(strategy, keep_metadata=WHOLE_METADATA, validate=validate_status)
    return builtin(
        "flowcontrol.apiserver.k8s.io", "flowschemas", strategy, table=TABLE, subresources={"status": status}
    )


def set_defaults(obj: Object) -> None:
    """Set the default of spec.matchingPrecedence (1000) in a FlowSchema, which is modified."""
    spec = obj.setdefault("spec", {})
    if not spec.get("matchingPrecedence"):
        spec["matchingPrecedence"] = 1000


def validate(obj: Object) -> list[FieldError]:
    """Validate a new or updated FlowSchema. The mandatory ones must have upstream's spec.

    matchingPrecedence is 1 to 10000, and only `exempt` may have 1. A priority level is named, the distinguisher method
    is known, and each rule has subjects and at least one resource or non-resource rule.
    """
    spec, name = obj.get("spec") or {}, obj["metadata"].get("name") or ""
    precedence, path = spec.get("matchingPrecedence") or 0, "spec.matchingPrecedence"
    errors: list[FieldError] = []
    if precedence <= 0:
        errors.append(field.invalid(path, precedence, "must be a positive value"))
    if precedence > _LAST:
        errors.append(field.invalid(path, precedence, f"must not be greater than {_LAST}"))
    if precedence == 1 and name != "exempt":
        errors.append(field.invalid(path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1"))
    method = spec.get("distinguisherMethod")
    if method is not None and (kind := method.get("type") or "") not in _DISTINGUISHERS:
        errors.append(field.not_supported("spec.distinguisherMethod.type", {"Type": kind}, _DISTINGUISHERS))
    level, path = (
        (spec.get("priorityLevelConfiguration") or {}).get("name") or "",
        "spec.priorityLevelConfiguration.name",
    )
    errors += dns_subdomain(level, path) if level else [field.required(path, "must reference a priority level")]
    for i, rule in enumerate(spec.get("rules") or ()):
        errors += _rule(rule, f"spec.rules[{i}]")
    fixed = _mandatory("flowschemas").get(name)
    if fixed is not None and internal("FlowSchemaSpec", spec) != internal("FlowSchemaSpec", fixed):
        errors.append(
            field.invalid("spec", internal("FlowSchemaSpec", spec), f"spec of '{name}' must equal the fixed value")
        )
    return errors


@cache
def _mandatory(resource: str) -> dict[str, Object]:
    """Return the fixed specs of the mandatory objects `exempt` and `catch-all`, by name.

    Args:
        resource: "flowschemas" or "prioritylevelconfigurations".
    """
    objects = orjson.loads(files("tetrapod.generic.flowcontrol").joinpath("mandatory.json").read_bytes())
    return {obj["metadata"]["name"]: obj["spec"] for obj in objects[resource]}


def _rule(rule: Object, path: str) -> list[FieldError]:
    subjects, resources, urls = (
        rule.get("subjects") or [],
        rule.get("resourceRules") or [],
        rule.get("nonResourceRules") or [],
    )
    errors = [error for i, subject in enumerate(subjects) for error in _subject(subject, f"{path}.subjects[{i}]")]
    if not subjects:
        errors.append(field.required(f"{path}.subjects", "subjects must contain at least one value"))
    if not resources and not urls:
        errors.append(field.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"))
    for i, policy_rule in enumerate(resources):
        errors += _resource_rule(policy_rule, f"{path}.resourceRules[{i}]")
    for i, policy_rule in enumerate(urls):
        errors += _url_rule(policy_rule, f"{path}.nonResourceRules[{i}]")
    return errors


def _subject(subject: Object, path: str) -> list[FieldError]:
    kind = subject.get("kind") or ""
    if kind not in _SUBJECTS:
        return [field.not_supported(f"{path}.kind", kind, frozenset(_SUBJECTS))]
    key = _SUBJECTS[kind]
    member = subject.get(key)
    errors = (
        [field.required(f"{path}.{key}", f"{key} is required when subject kind is '{kind}'")] if member is None else []
    )
    if member is not None:
        errors += _subject_name(member, kind, f"{path}.{key}")
    for other in ("ServiceAccount", "User", "Group"):
        name = _SUBJECTS[other]
        if other != kind and subject.get(name) is not None:
            errors.append(field.forbidden(f"{path}.{name}", f"{name} is forbidden when subject kind is not '{other}'"))
    return errors


def _subject_name(subject: Object, kind: str, path: str) -> list[FieldError]:
    name, namespace = subject.get("name") or "", subject.get("namespace") or ""
    errors = [] if name else [field.required(f"{path}.name")]
    if kind != "ServiceAccount":
        return errors
    if name and name != "*":
        errors += errors_from(is_dns1123_subdomain, name, f"{path}.name")
    if not namespace:
        return [*errors, field.required(f"{path}.namespace", "must specify namespace for service account")]
    return errors + [
        field.invalid(f"{path}.namespace", namespace, text) for text in validate_namespace_name(namespace, False)
    ]


def _verbs(rule: Object, path: str) -> list[FieldError]:
    verbs, at = rule.get("verbs") or [], f"{path}.verbs"
    if not verbs:
        return [field.required(at, "verbs must contain at least one value")]
    if "*" in verbs:
        return [field.invalid(at, verbs, "if '*' is present, must not specify other verbs")] if len(verbs) > 1 else []
    return [] if _VERBS.issuperset(verbs) else [field.not_supported(at, verbs, _VERBS)]


def _resource_rule(rule: Object, path: str) -> list[FieldError]:
    errors = _verbs(rule, path)
    for key, missing, others in (
        ("apiGroups", "resource rules must supply at least one api group", "api groups"),
        ("resources", "resource rules must supply at least one resource", "resources"),
    ):
        listed = rule.get(key) or []
        if not listed:
            errors.append(field.required(f"{path}.{key}", missing))
        elif "*" in listed and len(listed) > 1:
            errors.append(field.invalid(f"{path}.{key}", listed, f"if '*' is present, must not specify other {others}"))
    namespaces, at = rule.get("namespaces") or [], f"{path}.namespaces"
    if not namespaces and not rule.get("clusterScope"):
        text = "resource rules that are not cluster scoped must supply at least one namespace"
        errors.append(field.required(at, text))
    elif "*" in namespaces:
        if len(namespaces) > 1:
            errors.append(field.invalid(at, namespaces, "if '*' is present, must not specify other namespaces"))
    else:
        intro = "each member of this list must be '*' or a DNS-1123 label; "
        for i, name in enumerate(namespaces):
            errors += [field.invalid(f"{at}[{i}]", name, intro + text) for text in validate_namespace_name(name, False)]
    return errors


def _url_rule(rule: Object, path: str) -> list[FieldError]:
    errors, urls, at = _verbs(rule, path), rule.get("nonResourceURLs") or [], f"{path}.nonResourceURLs"
    if not urls:
        return [*errors, field.required(at, "nonResourceURLs must contain at least one value")]
    if "*" in urls:
        if len(urls) > 1:
            errors.append(field.invalid(at, urls, "if '*' is present, must not specify other non-resource URLs"))
        return errors
    for i, url in enumerate(urls):
        errors += _url(url, f"{at}[{i}]")
    return errors


def _url(url: str, path: str) -> list[FieldError]:
    if not url:
        return [field.invalid(path, url, "must not be empty")]
    if url == "/":
        return []
    if not url.startswith("/"):
        return [field.invalid(path, url, "must start with slash")]
    if " " in url:
        return [field.invalid(path, url, "must not contain white-space")]
    if "//" in url:
        return [field.invalid(path, url, "must not contain double slash")]
    star = url.find("*")
    if star < 0 or (star == len(url) - 1 and url.endswith("/*")):
        return []
    return [field.invalid(path, url, "wildcard can only do suffix matching")]


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the status conditions of a FlowSchema or PriorityLevelConfiguration: types are unique and set."""
    listed = (new.get("status") or {}).get("conditions") or []
    kinds = [c.get("type") or "" for c in listed]
    errors: list[FieldError] = []
    repeated_indexes = repeated(kinds)
    for i, kind in enumerate(kinds):
        at = f"status.conditions[{i}].type"
        if i in repeated_indexes:
            errors.append(field.duplicate(at, kind))
        if not kind:
            errors.append(field.required(at))
    return errors


def _flow_schema_order(obj: Object) -> tuple[int, str]:
    """Return the sort key for the order in which requests are matched, which is the order of tables.

    Upstream: FlowSchemaSequence.
    """
    return spec_of(obj).get("matchingPrecedence") or 0, name_of(obj)


def _row(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    dangling = next(
        (c.get("status") for c in status_of(obj).get("conditions") or [] if c.get("type") == "Dangling"), "?"
    )
    return [
        name_of(obj),
        (spec.get("priorityLevelConfiguration") or {}).get("name", ""),
        spec.get("matchingPrecedence") or 0,
        (spec.get("distinguisherMethod") or {}).get("type") or NONE,
        age(obj),
        dangling,
    ]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("PriorityLevel"),
        Column("MatchingPrecedence"),
        Column("DistinguisherMethod"),
        AGE,
        Column("MissingPL"),
    ),
    _row,
    order=_flow_schema_order,
)
