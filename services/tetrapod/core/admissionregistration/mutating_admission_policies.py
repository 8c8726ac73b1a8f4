"""The definition of MutatingAdmissionPolicies, with their validation and table columns.

Upstream: pkg/registry/admissionregistration/mutatingadmissionpolicy and pkg/apis/admissionregistration/validation.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.admissionregistration import shared_rules
from tetrapod.core.admissionregistration.expressions import Expressions
from tetrapod.core.admissionregistration.policy_strategies import GROUP, ParamAccess, PolicyStrategy
from tetrapod.core.cells import AGE, NAME, age, name_of, spec_of
from tetrapod.core.validation.names import known
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor

_PATCH_TYPES: Final = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}

TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Mutations", "integer"),
        Column("ParamKind"),
        AGE,
    ),
    lambda obj: [name_of(obj), len(spec_of(obj).get("mutations") or []), shared_rules.param_kind_text(obj), age(obj)],
)


def definition(access: ParamAccess) -> ResourceDefinition:
    """Return the resource definition of MutatingAdmissionPolicies: versions, strategy, subresources and columns.

    Args:
        access: checks whether a user may refer to a paramKind.
    """
    strategy = PolicyStrategy(
        access,
        "MutatingAdmissionPolicy",
        defaults=shared_rules.set_policy_defaults,
        validator=validate,
        whole_update_validator=validate,
    )
    return builtin(GROUP, "mutatingadmissionpolicies", strategy, versions=("v1", "v1beta1", "v1alpha1"), table=TABLE)


def validate(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Validate a MutatingAdmissionPolicy and compile its expressions.

    The rules are those of `validate_policy_spec`, and it has at least one mutation and a reinvocationPolicy.

    Args:
        obj: the policy.
        old: the stored policy that it replaces; None for a new one.
    """
    spec = obj.get("spec") or {}
    expressions = Expressions(params=spec.get("paramKind") is not None, composed=True)
    errors = shared_rules.validate_policy_spec(spec, old, expressions, mutating=True)
    mutations, policy = spec.get("mutations") or [], spec.get("reinvocationPolicy")
    if not mutations:
        errors.append(field.required("spec.mutations", "mutations must contain at least one item"))
    for i, mutation in enumerate(mutations):
        errors += _mutation(mutation, f"spec.mutations[{i}]", expressions)
    if not policy:
        return [*errors, field.required("spec.reinvocationPolicy")]
    return errors + known(policy, frozenset({"Never", "IfNeeded"}), "spec.reinvocationPolicy")


def _mutation(mutation: Object, path: str, expressions: Expressions) -> list[FieldError]:
    kind = mutation.get("patchType") or ""
    if not kind:
        return [field.required(f"{path}.patchType")]
    if kind not in _PATCH_TYPES:
        return [field.not_supported(f"{path}.patchType", kind, frozenset(_PATCH_TYPES))]
    key = _PATCH_TYPES[kind]
    errors: list[FieldError] = []
    if mutation.get(key) is None:
        errors.append(field.required(f"{path}.{key}", f"must be specified when patchType is {kind}"))
    elif not (expression := (mutation[key].get("expression") or "").strip()):
        errors.append(field.required(f"{path}.{key}.expression"))
    else:
        check = expressions.json_patch if kind == "JSONPatch" else expressions.apply_configuration
        errors += check(expression, f"{path}.{key}.expression")
    others = [other for other in _PATCH_TYPES.values() if other != key and mutation.get(other) is not None]
    text = f"must not be specified when patchType is {kind}"
    return errors + [field.invalid(f"{path}.{other}", f"{{{other}}}", text) for other in others]
