"""The definition of IngressClasses, with their defaults, validation and table columns.

Upstream: pkg/registry/networking/ingressclass/strategy.go and pkg/apis/networking/validation.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, NONE, age, name_of, spec_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.networking import ingresses
from tetrapod.core.validation import differences
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.hand_written import HandWritten
from tetrapod.machinery import field
from tetrapod.machinery.domain_paths import domain_prefixed_path
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.metadata import validate_generate_name
from tetrapod.machinery.names import name_is_dns_subdomain, validate_namespace_name
from tetrapod.machinery.table import Column, TableConvertor

_LONGEST_CONTROLLER: Final = 250

_DEFAULT_CLASS: Final = "ingressclass.kubernetes.io/is-default-class"


_FORM: Final = HandWritten(
    "spec.controller",
    "spec.parameters.apiGroup",
    "spec.parameters.kind",
    "spec.parameters.name",
    "spec.parameters.scope",
    "spec.parameters.namespace",
)


def definition() -> ResourceDefinition:
    """Return the resource definition of IngressClasses: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        hand_written=_FORM,
        defaults=set_defaults,
        validator=validate,
        whole_update_validator=validate_update,
        generation=("spec",),
    )
    return builtin("networking.k8s.io", "ingressclasses", strategy, table=TABLE)


def set_defaults(obj: Object) -> None:
    """Set the default of spec.parameters.scope (Cluster) of an IngressClass, which is modified."""
    parameters = (obj.get("spec") or {}).get("parameters")
    if parameters is not None and parameters.get("scope") is None:
        parameters["scope"] = "Cluster"


def validate(obj: Object) -> list[FieldError]:
    """Validate the controller and the parameters of a new IngressClass.

    The controller is a name with a domain. Parameters name a kind and an object; with the scope Namespace they also
    have a namespace, and with Cluster none.
    """
    spec = obj.get("spec") or {}
    controller, parameters = spec.get("controller") or "", spec.get("parameters")
    errors = [field.too_long("spec.controller", _LONGEST_CONTROLLER)] if len(controller) > _LONGEST_CONTROLLER else []
    errors += domain_prefixed_path(controller, "spec.controller")
    if parameters is None:
        return errors
    path = "spec.parameters"
    errors += ingresses.object_reference(parameters, path, None) + _scope(parameters, path)
    return errors + [field.required(f"{path}.{key}") for key in ("kind", "name") if not parameters.get(key)]


def _scope(parameters: Object, path: str) -> list[FieldError]:
    scope, namespace, at = parameters.get("scope"), parameters.get("namespace"), f"{path}.namespace"
    match scope:
        case None:
            return [field.required(f"{path}.scope")]
        case "Cluster":
            return [field.forbidden(at, "`parameters.scope` is set to 'Cluster'")] if namespace is not None else []
        case "Namespace":
            if namespace is None:
                return [field.required(at, "`parameters.scope` is set to 'Namespace'")]
            return [field.invalid(at, namespace, text) for text in validate_namespace_name(namespace, False)]
    return [field.not_supported(f"{path}.scope", scope, ["Cluster", "Namespace"], typed=False)]


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated IngressClass by the rules for a new one (`validate`); its controller is immutable.

    The errors of generateName follow those of immutable fields, as upstream.
    """
    controller, old_controller = ((obj.get("spec") or {}).get("controller") or "" for obj in (new, old))
    errors = differences.immutable(controller, old_controller, "spec.controller")
    return errors + validate_generate_name(new["metadata"], name_is_dns_subdomain) + validate(new)


def _row(obj: Object) -> list[Any]:
    parameters = spec_of(obj).get("parameters")
    text = NONE
    if parameters is not None:
        group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") is not None else ""
        text = f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"
    default = (obj["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
    return [
        f"{name_of(obj)} (default)" if default else name_of(obj),
        spec_of(obj).get("controller", ""),
        text,
        age(obj),
    ]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Controller"),
        Column("Parameters"),
        AGE,
    ),
    _row,
)
