"""Type checking of the expressions of a ValidatingAdmissionPolicy for each type that it matches.

Imported together with CEL when the first policy is checked.
Upstream: k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking.go, TypeChecker.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import orjson

from tetrapod.generic.admission.policy.environment import typed_environment
from tetrapod.generic.admission.policy.expressions import ANYTHING, Composer
from tetrapod.generic.client.interface import Client
from tetrapod.machinery import types
from tetrapod.machinery.cel.declarations import DeclType
from tetrapod.machinery.cel.environment import Environment
from tetrapod.machinery.cel.schema_types import declared as declaration_of
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, GroupVersionResource, Object
from tetrapod.machinery.schema.structural import build
from tetrapod.machinery.schema_node import SchemaNode

_MOST_TYPES: Final = 10
_CRDS: Final = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_AGGREGATED: Final = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


async def check(client: Client, policy: Object) -> list[Object]:
    """Return the policy's expressionWarnings, by type-checking its expressions for each type that it matches.

    Returns:
        A warning for each expression that does not compile for at least one type; [] if all compile.

    Raises:
        StatusError: the CustomResourceDefinitions cannot be listed.
        Unavailable: the server cannot be reached.
    """
    spec = policy.get("spec") or {}
    rules = (spec.get("matchConstraints") or {}).get("resourceRules") or []
    kinds = _kinds(rules, await _resources(client)) if rules else []
    crds = await client.list(_CRDS)
    declared = [(kind, declaration) for kind in kinds if (declaration := _declaration(kind, crds)) is not None]
    params = spec.get("paramKind")
    param_kind = _param_kind(params) if params is not None else None
    param_type = _declaration(param_kind, crds) if param_kind is not None else None
    composers = [(kind, _composer(spec, declaration, params is not None, param_type)) for kind, declaration in declared]
    warnings = []
    for i, validation in enumerate(spec.get("validations") or ()):
        for key in ("expression", "messageExpression"):
            if not validation.get(key):
                continue
            issues = [text for kind, composer in composers if (text := _issue(kind, composer, validation[key]))]
            if issues:
                warnings.append({"fieldRef": f"spec.validations[{i}].{key}", "warning": "\n".join(issues)})
    return warnings


def _issue(kind: GroupVersionKind, composer: Composer, expression: str) -> str:
    """Return the compilation error of the expression, with the kind as prefix, or "".

    Args:
        composer: compiles expressions about objects of this kind.
    """
    error = composer.compile(expression, ANYTHING).error
    return f"{kind}: {error.removeprefix('compilation failed: ')}\n" if error else ""


def _composer(spec: Object, decl: DeclType, params: bool, param_type: DeclType | None) -> Composer:
    environment = typed_environment(decl, params, param_type)

    def always(params: bool, authorizer: bool, patch_types: bool) -> Environment:
        return environment

    composer = Composer(params=params, environment_of=always)
    for variable in spec.get("variables") or ():
        composer.variable(variable["name"], variable["expression"])
    return composer


def _param_kind(given: Object) -> GroupVersionKind | None:
    """Return the GroupVersionKind of spec.paramKind, or None if its apiVersion is invalid."""
    try:
        return GroupVersion.parse(given.get("apiVersion") or "").with_kind(given.get("kind") or "")
    except ValueError:
        return None


_Served = tuple[str, str, str, GroupVersionKind]
"""Group, version, plural name, kind."""


async def _resources(client: Client) -> list[_Served]:
    """Return all served resources of aggregated discovery; a document that cannot be read is skipped."""
    served: list[_Served] = []
    for path in ("/api", "/apis"):
        code, body = await client.raw("GET", path, headers=_AGGREGATED)
        if code != 200:
            continue
        for group in orjson.loads(body).get("items") or ():
            name = (group.get("metadata") or {}).get("name") or ""
            for version in group.get("versions") or ():
                for resource in version.get("resources") or ():
                    kind = resource.get("responseKind") or {}
                    gvk = GroupVersionKind(
                        kind.get("group") or name, kind.get("version") or version["version"], kind.get("kind") or ""
                    )
                    served.append((name, version["version"], resource["resource"], gvk))
    return served


def _kinds(rules: list[Object], served: list[_Served]) -> list[GroupVersionKind]:
    """Return the kinds that the rules match, sorted. Rules with wildcards in groups or versions match no kinds.

    The first rule that yields 10 kinds ends the collection.

    Args:
        rules: spec.matchConstraints.resourceRules of the policy.
        served: all served resources.
    """
    kinds: set[GroupVersionKind] = set()
    for rule in rules:
        for count, kind in enumerate(_kinds_of(rule, served), 1):
            kinds.add(kind)
            if count == _MOST_TYPES:
                return sorted(kinds)
    return sorted(kinds)


def _kinds_of(rule: Object, served: list[_Served]) -> Iterator[GroupVersionKind]:
    """Yield the kinds that a rule matches. Resources with wildcards or subresources are ignored."""
    groups, versions = sorted(rule.get("apiGroups") or ()), sorted(rule.get("apiVersions") or ())
    if any("*" in name for name in (*groups, *versions)):
        return
    resources = sorted(name for name in rule.get("resources") or () if "*" not in name and "/" not in name)
    for group in groups:
        for version in versions:
            for resource in resources:
                # An empty group matches any group, as upstream's lookup of resources does.
                yield from (
                    kind for g, v, r, kind in served if (not group or g == group) and v == version and r == resource
                )


def _declaration(kind: GroupVersionKind, crds: Object) -> DeclType | None:
    """Return the CEL type of a kind, or None if its schema is unknown or recursive.

    Args:
        crds: the list of all CustomResourceDefinitions.
    """
    node = _schema(kind, crds)
    if node is None:
        return None
    try:
        declaration = declaration_of(node, root=True)
    except RecursionError:  # a recursive type has no finite declaration
        return None
    return declaration.named(kind.kind) if declaration is not None else None


def _schema(kind: GroupVersionKind, crds: Object) -> SchemaNode | None:
    """Return the schema of a built-in or custom kind, or None if the kind is unknown or its version has no schema.

    Args:
        crds: the list of all CustomResourceDefinitions.
    """
    try:
        return types.schema_for(kind)
    except KeyError:
        pass
    for crd in crds.get("items") or ():
        spec = crd["spec"]
        if spec["group"] != kind.group or spec["names"]["kind"] != kind.kind:
            continue
        for version in spec["versions"]:
            schema = (version.get("schema") or {}).get("openAPIV3Schema")
            if version["name"] == kind.version and schema is not None:
                node = build(schema)
                node.properties["metadata"] = types.load(_OBJECT_META)
                return node
    return None
