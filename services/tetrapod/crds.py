"""CustomResourceDefinitions from pydantic models.

    from tetrapod.crds import Column, CustomResource, Version

    ORDER = CustomResource("shop.example.com", "Order", [Version("v1", Order, columns=[Column("Paid", ".spec.paid")])])
    server.apply(ORDER.definition())

`tetrapod create crd module:ORDER` prints the definition. Fields get extensions of Kubernetes by pydantic's
`Field(json_schema_extra={"x-kubernetes-validations": …})`. docs/how-to/crds.md explains both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tetrapod.generic.aggregated.schemas import structural_schema
from tetrapod.machinery.gvk import Object

__all__ = ["Column", "CustomResource", "Scale", "Version", "validations"]

_API_VERSION: Final = "apiextensions.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`.

    Attributes:
        name: the heading.
        path: the JSON path of the value, such as `.spec.size`.
        type: the type of the values: "string", "integer", "number", "boolean" or "date".
        priority: 0 to show the column always, above 0 to show it only with `-o wide`.
        description: the text for clients that render tables.
        format: the OpenAPI format of the values; "" for none.
    """

    name: str
    path: str
    type: str = "string"
    priority: int = 0
    description: str = ""
    format: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """The subresource `scale`, by JSON paths. Kubernetes rejects null in these fields, also if the model permits it.

    Attributes:
        spec_replicas: the path of the wanted number.
        status_replicas: the path of the actual number.
        selector: the path of the label selector as text; "" for none.
    """

    spec_replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str = ""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a custom resource.

    Attributes:
        name: the name, such as "v1".
        model: the whole object, as a pydantic model or a JSON schema.
        served: whether clients can use the version.
        deprecated: the text of a Warning header for requests in this version; "" for none.
        columns: the columns of `kubectl get` after the name.
        scale: the subresource `scale`, or None.
        selectable: the JSON paths of further fields that field selectors support.
    """

    name: str
    model: Any
    served: bool = True
    deprecated: str = ""
    columns: Sequence[Column] = ()
    scale: Scale | None = None
    selectable: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class CustomResource:
    """A custom resource.

    Attributes:
        group: the API group.
        kind: the kind in CamelCase.
        versions: the versions, at least one.
        plural: the name of the resource; "" for the kind in lower case with an "s".
        namespaced: whether objects are namespaced.
        storage_version: the version in which objects are stored; "" for the first one.
        short_names: the short names for kubectl.
        categories: the categories for kubectl, such as "all".
        conversion: `spec.conversion` of the definition; empty if versions differ only in their names.
    """

    group: str
    kind: str
    versions: Sequence[Version]
    plural: str = ""
    namespaced: bool = True
    storage_version: str = ""
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    conversion: Mapping[str, Any] = field(default_factory=dict)

    def definition(self) -> Object:
        """Return the CustomResourceDefinition.

        A version whose model has a field `status` has the subresource `status`.

        Raises:
            ValueError: a model has no structural schema (`Kind` of `tetrapod.generic.aggregated` has the same rules),
                or the storage version is not among the versions.
        """
        stored = self.storage_version or self.versions[0].name
        if stored not in [version.name for version in self.versions]:
            raise ValueError(f"the storage version {stored} is none of the versions")
        plural = self.plural or f"{self.kind.lower()}s"
        names: Object = {
            "kind": self.kind,
            "listKind": f"{self.kind}List",
            "plural": plural,
            "singular": self.kind.lower(),
        }
        if self.short_names:
            names["shortNames"] = list(self.short_names)
        if self.categories:
            names["categories"] = list(self.categories)
        spec: Object = {
            "group": self.group,
            "names": names,
            "scope": "Namespaced" if self.namespaced else "Cluster",
            "versions": [_version(version, stored=version.name == stored) for version in self.versions],
        }
        if self.conversion:
            spec["conversion"] = dict(self.conversion)
        metadata = {"name": f"{plural}.{self.group}"}
        return {"apiVersion": _API_VERSION, "kind": "CustomResourceDefinition", "metadata": metadata, "spec": spec}


def _version(version: Version, *, stored: bool) -> Object:
    try:
        schema = structural_schema(version.model, rules=True)
    except ValueError as error:
        raise ValueError(f"version {version.name}: {error}") from None
    result: Object = {"name": version.name, "served": version.served, "storage": stored}
    if version.deprecated:
        result |= {"deprecated": True, "deprecationWarning": version.deprecated}
    result["schema"] = {"openAPIV3Schema": schema}
    subresources: Object = {"status": {}} if "status" in schema["properties"] else {}
    if version.scale is not None:
        subresources["scale"] = _scale(version.scale)
    if subresources:
        result["subresources"] = subresources
    if version.columns:
        result["additionalPrinterColumns"] = [_column(column) for column in version.columns]
    if version.selectable:
        result["selectableFields"] = [{"jsonPath": path} for path in version.selectable]
    return result


def _scale(scale: Scale) -> Object:
    paths = {"specReplicasPath": scale.spec_replicas, "statusReplicasPath": scale.status_replicas}
    return {**paths, "labelSelectorPath": scale.selector} if scale.selector else paths


def _column(column: Column) -> Object:
    optional = {"priority": column.priority, "description": column.description, "format": column.format}
    set_ones = {key: value for key, value in optional.items() if value}
    return {"name": column.name, "type": column.type, "jsonPath": column.path, **set_ones}


def validations(*rules: tuple[str, str], **extensions: Any) -> dict[str, Any]:
    """Return `json_schema_extra` with CEL rules, for a field or for `model_config`.

    Args:
        rules: pairs of a CEL expression, with the value as `self`, and the message if it is false.
        extensions: further extensions without their prefix `x-kubernetes-`, such as `list_type="set"`.
    """
    extra: dict[str, Any] = {f"x-kubernetes-{name.replace('_', '-')}": value for name, value in extensions.items()}
    if rules:
        extra["x-kubernetes-validations"] = [{"rule": rule, "message": message} for rule, message in rules]
    return extra
