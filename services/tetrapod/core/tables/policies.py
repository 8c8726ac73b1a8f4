"""Columns of admissionregistration.k8s.io and resource.k8s.io.

Upstream: pkg/printers/internalversion/printers.go, printValidatingAdmissionPolicy, printResourceClaim and others.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, UNSET, age, name_of, spec_of
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor


def _webhooks_row(obj: Object) -> list[Any]:
    return [name_of(obj), len(obj.get("webhooks") or []), age(obj)]


WEBHOOK_CONFIGURATIONS: Final = TableConvertor((NAME, Column("Webhooks", "integer"), AGE), _webhooks_row)


def _param_kind(obj: Object) -> str:
    kind = spec_of(obj).get("paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET


VALIDATING_ADMISSION_POLICIES: Final = TableConvertor(
    (
        NAME,
        Column("Validations", "integer"),
        Column("ParamKind"),
        AGE,
    ),
    lambda obj: [name_of(obj), len(spec_of(obj).get("validations") or []), _param_kind(obj), age(obj)],
)
MUTATING_ADMISSION_POLICIES: Final = TableConvertor(
    (
        NAME,
        Column("Mutations", "integer"),
        Column("ParamKind"),
        AGE,
    ),
    lambda obj: [name_of(obj), len(spec_of(obj).get("mutations") or []), _param_kind(obj), age(obj)],
)


def _go_selector(selector: Object) -> str:
    """Format a LabelSelector as Go's String method does."""
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{e.get('key', '')},Operator:{e.get('operator', '')},Values:[{' '.join(e.get('values') or ())}],}},"
        for e in selector.get("matchExpressions") or ()
    )
    return f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"


def _binding_row(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    ref = spec.get("paramRef")
    text = UNSET
    if ref and ref.get("name"):
        text = f"{ref.get('namespace') or '*'}/{ref['name']}"
    elif ref and ref.get("selector") is not None:
        text = _go_selector(ref["selector"])
    return [name_of(obj), spec.get("policyName", ""), text, age(obj)]


ADMISSION_POLICY_BINDINGS: Final = TableConvertor(
    (
        NAME,
        Column("PolicyName"),
        Column("ParamRef"),
        AGE,
    ),
    _binding_row,
)
