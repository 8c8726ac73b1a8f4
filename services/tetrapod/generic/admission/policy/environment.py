"""The CEL environments of admission: object, oldObject, request, namespaceObject, params, authorizer, variables.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/cel/compile.go, BuildRequestType, BuildNamespaceType,
createEnvForOpts
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from tetrapod.machinery.cel import declarations, types
from tetrapod.machinery.cel.declarations import DeclType, list_decl, map_decl, object_decl
from tetrapod.machinery.cel.environment import Environment
from tetrapod.machinery.cel.library.authorizer import AUTHORIZER, RESOURCE_CHECK
from tetrapod.machinery.cel.types import CelType

VARIABLES: Final = "kubernetes.variables"
_STRING: Final = declarations.STRING
_STRINGS: Final = list_decl(_STRING)
_LABELS: Final = map_decl(_STRING, _STRING)


def _strings(*names: str) -> dict[str, DeclType]:
    return dict.fromkeys(names, _STRING)


@cache
def request_type() -> DeclType:
    """Return the CEL type of the variable `request`: an AdmissionRequest without uid and objects."""
    kind = object_decl("kubernetes.GroupVersionKind", _strings("group", "version", "kind"))
    resource = object_decl("kubernetes.GroupVersionResource", _strings("group", "version", "resource"))
    user = {**_strings("username", "uid"), "groups": _STRINGS, "extra": map_decl(_STRING, _STRINGS)}
    return object_decl(
        "kubernetes.AdmissionRequest",
        {
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            **_strings("subResource", "requestSubResource", "name", "namespace", "operation"),
            "userInfo": object_decl("kubernetes.UserInfo", user),
            "dryRun": declarations.BOOL,
            "options": declarations.DYN,
        },
    )


@cache
def namespace_type() -> DeclType:
    """Return the CEL type of the variable `namespaceObject`: a Namespace without owners and managed fields.

    Its fields are those of upstream, where `UID` (for uid) is a mistake.
    """
    condition = {**_strings("status", "type", "message", "reason"), "lastTransitionTime": declarations.TIMESTAMP}
    metadata = {
        **_strings("name", "generateName", "namespace", "UID", "resourceVersion"),
        "labels": _LABELS,
        "annotations": _LABELS,
        "creationTimestamp": declarations.TIMESTAMP,
        "deletionTimestamp": declarations.TIMESTAMP,
        "deletionGracePeriodSeconds": declarations.INT,
        "generation": declarations.INT,
        "finalizers": _STRINGS,
    }
    status = {"conditions": list_decl(object_decl("kubernetes.NamespaceCondition", condition)), "phase": _STRING}
    return object_decl(
        "kubernetes.Namespace",
        {
            "metadata": object_decl("kubernetes.NamespaceMetadata", metadata),
            "spec": object_decl("kubernetes.NamespaceSpec", {"finalizers": _STRINGS}),
            "status": object_decl("kubernetes.NamespaceStatus", status),
        },
    )


@cache
def admission_environment(params: bool, authorizer: bool = True, patch_types: bool = False) -> Environment:
    """Return the CEL environment in which expressions are evaluated. Objects and params have the type dyn.

    Args:
        params: whether the policy has parameters.
        authorizer: whether expressions may use the authorizer; message expressions may not.
        patch_types: whether expressions may construct `Object` and `JSONPatch`, as mutations do.
    """
    variables: dict[str, CelType | DeclType] = {
        "object": types.DYN,
        "oldObject": types.DYN,
        "namespaceObject": namespace_type(),
        "request": request_type(),
    }
    if params:
        variables["params"] = types.DYN
    if authorizer:
        variables |= {"authorizer": AUTHORIZER, "authorizer.requestResource": RESOURCE_CHECK}
    return Environment(variables, patch_types=patch_types)


def typed_environment(object_type: DeclType | None, params: bool, params_type: DeclType | None) -> Environment:
    """Return the CEL environment for the type checking of a policy, whose results are only warnings in its status.

    Args:
        object_type: the type of objects, or None if it is unknown; then it is dyn.
        params: whether the policy has parameters.
        params_type: the type of parameters, or None if it is unknown; then it is dyn.
    """
    variables: dict[str, CelType | DeclType] = {
        "namespaceObject": namespace_type(),
        "request": request_type(),
        "object": object_type or types.DYN,
        "oldObject": object_type or types.DYN,
        "authorizer": AUTHORIZER,
    }
    if params:
        variables["params"] = params_type or types.DYN
    return Environment(variables)


def with_variables(environment: Environment, fields: Mapping[str, DeclType]) -> Environment:
    """Return the environment extended by the CEL variable `variables`.

    Args:
        environment: the environment to extend.
        fields: the types of the fields of `variables`, by name. Fields that the caller adds to this mapping later are
            known in later compilations.
    """
    return environment.extend({"variables": object_decl(VARIABLES, fields)})


_KEPT: Final = frozenset(
    {
        types.ANY,
        types.BOOL,
        types.BYTES,
        types.DOUBLE,
        types.DURATION,
        types.INT,
        types.NULL,
        types.STRING,
        types.TIMESTAMP,
        types.UINT,
    }
)


def variable_type(expression_type: CelType | None) -> DeclType:
    """Return the declared type of a composed variable, given the type of its expression.

    Basic types, and lists and maps of them, are kept. All other types become dyn, as does None (upstream:
    convertCelTypeToDeclType).

    Args:
        expression_type: the type of the compiled expression; None if it could not be compiled.
    """
    if expression_type in _KEPT:
        return DeclType(expression_type.name, expression_type, 0)
    if expression_type is not None and expression_type.kind == "list":
        return list_decl(variable_type(expression_type.params[0]))
    if expression_type is not None and expression_type.kind == "map":
        return map_decl(variable_type(expression_type.params[0]), variable_type(expression_type.params[1]))
    return declarations.DYN
