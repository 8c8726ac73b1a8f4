"""OpenAPI v3 documents of the custom resources of one group-version.

Their paths differ from those of built-in resources: `/watch/` paths and paths of discovery are missing, and a patch has
one successful response.
Upstream: k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder/builder.go and controller/openapiv3
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from tetrapod.generic.openapi.operations import (
    CUSTOM_TYPES,
    DELETE_PARAMETERS,
    LIST_PARAMETERS,
    META,
    PATCH_PARAMETERS,
    REF,
    WRITE_PARAMETERS,
    Operation,
)
from tetrapod.generic.openapi.registered_versions import kinds_in_all_groups
from tetrapod.generic.openapi.resource_paths import ResourcePaths, SubresourcePaths
from tetrapod.generic.openapi.schemas import references, schemas_for
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.types.descriptions import Texts

CUSTOM_INFO: Final = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
_PATCH_TYPES: Final = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
_SCALE: Final = "io.k8s.api.autoscaling.v1.Scale"
_DELETE_OPTIONS: Final = META + "DeleteOptions"
_OBJECT_MODEL: Final = "io.k8s.api.core.v1.ConfigMap"
_LIST_MODEL: Final = "io.k8s.api.core.v1.PodList"
_CONVENTIONS: Final = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_EMBEDDED_TEXTS: Final = {
    "apiVersion": (
        "apiVersion defines the versioned schema of this representation of an object. "
        f"More info: {_CONVENTIONS}#resources"
    ),
    "kind": (
        "kind is a string value representing the type of this object. In CamelCase. "
        f"More info: {_CONVENTIONS}#types-kinds"
    ),
}
"""Upstream's descriptions of the fields of embedded resources, which differ from those of other resources."""
SELECTABLE: Final = "x-kubernetes-selectable-fields"


@dataclass(frozen=True, slots=True)
class CustomKind:
    """One kind of a group-version, for its OpenAPI document.

    Attributes:
        kind: the kind.
        list_kind: the kind of lists.
        plural: the name of the resource.
        namespaced: whether objects are namespaced.
        schema: its openAPIV3Schema, or None if it has no structural schema.
        status: whether it has the status subresource.
        scale: whether it has the scale subresource.
        selectable: the paths of further fields that field selectors support, such as `spec.color`.
    """

    kind: str
    list_kind: str
    plural: str
    namespaced: bool
    schema: Mapping[str, Any] | None
    status: bool = False
    scale: bool = False
    selectable: tuple[str, ...] = ()


def custom_parts(kinds: Iterable[CustomKind], group_version: GroupVersion) -> Iterator[Object]:
    """Yield an OpenAPI v3 document for each kind, which together are the document of the group-version.

    A schema that several kinds reference is only in the first of these documents. The documents share objects with
    `CustomKind.schema`: modifying a document modifies the schema.
    """
    known: set[str] = set()
    for kind in kinds:
        paths = _paths(kind, group_version).paths()
        own = kind_schemas(kind, group_version)
        schemas = {**schemas_for((references(paths) | references(own)) - own.keys() - known), **own}
        if _DELETE_OPTIONS in schemas:
            schemas[_DELETE_OPTIONS]["x-kubernetes-group-version-kind"] = kinds_in_all_groups("DeleteOptions")
        known.update(schemas)
        components = {"schemas": dict(sorted(schemas.items()))}
        yield {"openapi": "3.0.0", "info": CUSTOM_INFO, "paths": dict(sorted(paths.items())), "components": components}


@cache
def _texts(definition: str) -> Mapping[str, str]:
    """Return the descriptions of apiVersion, kind and metadata of a built-in definition, by the name of the field.

    A field without a description is left out.
    """
    return {
        name: text for name, text in Texts().of(definition)[1].items() if name in ("apiVersion", "kind", "metadata")
    }


def definition_name(group_version: GroupVersion, kind: str) -> str:
    """Return the name of the schema of a kind: `Widget` in `example.com/v1` becomes `com.example.v1.Widget`."""
    return ".".join((*reversed(group_version.group.split(".")), group_version.version, kind))


def kind_schemas(kind: CustomKind, group_version: GroupVersion) -> dict[str, Object]:
    """Return the schemas of a kind and of its list by name (`definition_name`)."""
    name = definition_name(group_version, kind.kind)
    texts = _texts(_OBJECT_MODEL)
    item = _item_schema(kind, texts)
    item["x-kubernetes-group-version-kind"] = [_gvk(group_version, kind.kind)]
    listed: Object = {
        "description": f"{kind.list_kind} is a list of {kind.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": _text_field(texts, "apiVersion"),
            "items": {
                "description": f"List of {kind.plural}. More info: {_CONVENTIONS}",
                "type": "array",
                "items": {"$ref": REF + name},
            },
            "kind": _text_field(texts, "kind"),
            "metadata": _reference("ListMeta", _texts(_LIST_MODEL)),
        },
        "x-kubernetes-group-version-kind": [_gvk(group_version, kind.list_kind)],
    }
    if kind.selectable:
        item[SELECTABLE] = listed[SELECTABLE] = [{"fieldPath": path} for path in kind.selectable]
    return {name: item, definition_name(group_version, kind.list_kind): listed}


def _item_schema(kind: CustomKind, texts: Mapping[str, str]) -> Object:
    if kind.schema is None:
        return {"type": "object"}
    schema = _publish(kind.schema, texts)
    schema["properties"] = {**schema.get("properties", {}), **_meta_fields(texts)}
    return schema


def _meta_fields(texts: Mapping[str, str]) -> Object:
    return {
        "apiVersion": _text_field(texts, "apiVersion"),
        "kind": _text_field(texts, "kind"),
        "metadata": _reference("ObjectMeta", texts),
    }


def _publish(schema: Mapping[str, Any], texts: Mapping[str, str]) -> Object:
    """Return the published form of a schema of a CRD. `schema` is not changed, but parts of it are shared.

    Embedded resources get the fields apiVersion, kind and metadata, and int-or-string is expressed by `anyOf`.

    Args:
        schema: the schema of the CRD, or of a field.
        texts: the descriptions of apiVersion, kind and metadata by name.
    """
    published: Object = {}
    for key, value in schema.items():
        if key == "properties":
            published[key] = {name: _publish(child, texts) for name, child in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            published[key] = _publish(value, texts)
        else:
            published[key] = value
    if schema.get("x-kubernetes-int-or-string"):
        _unfold(published)
    if schema.get("x-kubernetes-embedded-resource"):
        published["properties"] = {**published.get("properties", {}), **_meta_fields({**texts, **_EMBEDDED_TEXTS})}
        required = list(published.get("required") or ())
        published["required"] = required + [name for name in ("kind", "apiVersion") if name not in required]
    return published


def _unfold(schema: Object) -> None:
    """Express x-kubernetes-int-or-string by `anyOf`, in place (upstream: Unfold of structural schemas)."""
    either = [{"type": "integer"}, {"type": "string"}]
    if schema.get("anyOf") == either or (schema.get("allOf") or [{}])[0].get("anyOf") == either:
        return
    if schema.get("anyOf"):
        schema["allOf"] = [{"anyOf": either}, *(schema.get("allOf") or ())]
    else:
        schema["anyOf"] = either


def _text_field(texts: Mapping[str, str], name: str) -> Object:
    return {"description": texts[name], "type": "string"} if name in texts else {"type": "string"}


def _reference(meta: str, texts: Mapping[str, str]) -> Object:
    reference: Object = {"allOf": [{"$ref": REF + META + meta}]}
    return {"description": texts["metadata"], **reference} if "metadata" in texts else reference


def _gvk(group_version: GroupVersion, kind: str) -> Object:
    return {"group": group_version.group, "kind": kind, "version": group_version.version}


def _paths(kind: CustomKind, group_version: GroupVersion) -> CustomPaths:
    gvk = group_version.with_kind(kind.kind)
    name = definition_name(group_version, kind.kind)
    subresources = [SubresourcePaths("status", (), gvk, name)] if kind.status else []
    if kind.scale:
        subresources.append(SubresourcePaths("scale", (), gvk, _SCALE))
    return CustomPaths(
        gvk=gvk,
        plural=kind.plural,
        namespaced=kind.namespaced,
        verbs=("list",),
        definition=name,
        list_definition=definition_name(group_version, kind.list_kind),
        subresources=tuple(subresources),
        produces=CUSTOM_TYPES,
        patch_types=_PATCH_TYPES,
    )


class CustomPaths(ResourcePaths):
    """The paths of a custom resource, which supports all verbs. Operations are those of apiextensions' builder."""

    __slots__ = ()

    def _list(self, subject: str) -> Operation:
        return self._operation("get", "list", subject, self.list_definition, action="list", query=LIST_PARAMETERS)

    def _collection(self) -> Iterator[Operation]:
        subject, status = self._scoped, META + "Status"
        yield self._list(subject)
        yield self._operation(
            "post",
            "create",
            subject,
            self.definition,
            query=WRITE_PARAMETERS,
            body=self.definition,
            body_types=CUSTOM_TYPES,
            codes=("200", "201", "202"),
        )
        yield self._operation(
            "delete", "delete", f"Collection{subject}", status, action="deletecollection", query=LIST_PARAMETERS
        )

    def _read(self, subject: str, definition: str, kind: GroupVersionKind) -> Operation:
        return self._operation("get", "read", subject, definition, query=("resourceVersion",))

    def _replace(self, subject: str, definition: str, kind: GroupVersionKind) -> Operation:
        query, codes = WRITE_PARAMETERS, ("200", "201")
        return self._operation(
            "put", "replace", subject, definition, query=query, body=definition, body_types=CUSTOM_TYPES, codes=codes
        )

    def _patch(self, subject: str, definition: str, kind: GroupVersionKind) -> Operation:
        body, types = META + "Patch", self.patch_types
        return self._operation(
            "patch", "patch", subject, definition, query=PATCH_PARAMETERS, body=body, body_types=types
        )

    def _item(self) -> Iterator[Operation]:
        subject, definition = self._scoped, self.definition
        yield self._read(subject, definition, self.gvk)
        yield self._replace(subject, definition, self.gvk)
        yield self._operation(
            "delete",
            "delete",
            subject,
            META + "Status",
            query=DELETE_PARAMETERS,
            body=_DELETE_OPTIONS,
            body_types=CUSTOM_TYPES,
            body_required=False,
            codes=("200", "202"),
        )
        yield self._patch(subject, definition, self.gvk)

    def _subresource(self, sub: SubresourcePaths) -> Iterator[Operation]:
        subject = self._scoped + sub.name.capitalize()
        yield self._read(subject, sub.definition, sub.kind)
        yield self._replace(subject, sub.definition, sub.kind)
        yield self._patch(subject, sub.definition, sub.kind)
