"""The schemas of AdmissionReview and ConversionReview as webhooks respond with them. They are not resources.

v1beta1 has the same fields as v1.
Upstream: k8s.io/api/admission/v1/types.go; apiextensions-apiserver/pkg/apis/apiextensions/v1/types.go
"""

from __future__ import annotations

from functools import cache

from tetrapod.generic.webhook.responses import Expected
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.types import load
from tetrapod.machinery.types.definitions import RAW_EXTENSION

_STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"


def _leaf(type_: str, format_: str = "", presence: str = "") -> SchemaNode:
    node = SchemaNode(type_)
    node.format, node.presence = format_, presence
    return node


def _struct(name: str, presence: str = "*", **properties: SchemaNode) -> SchemaNode:
    node = SchemaNode("object")
    node.definition, node.presence, node.properties = f"webhook.{name}", presence, properties
    return node


def _list(items: SchemaNode) -> SchemaNode:
    node = SchemaNode("array")
    node.items = items
    return node


def _map() -> SchemaNode:
    node = SchemaNode("object")
    node.additional_properties = _leaf("string")
    return node


@cache
def admission_review() -> SchemaNode:
    """Return the schema of an AdmissionReview with a response. It is shared: do not modify it."""
    response = _struct(
        "AdmissionResponse",
        uid=_leaf("string"),
        allowed=_leaf("boolean"),
        status=load(_STATUS),
        patch=_leaf("string", "byte"),
        patchType=_leaf("string", presence="*"),
        auditAnnotations=_map(),
        warnings=_list(_leaf("string")),
    )
    return _struct("AdmissionReview", kind=_leaf("string"), apiVersion=_leaf("string"), response=response)


@cache
def conversion_review() -> SchemaNode:
    """Return the schema of a ConversionReview with a response. It is shared: do not modify it."""
    response = _struct(
        "ConversionResponse", uid=_leaf("string"), convertedObjects=_list(load(RAW_EXTENSION)), result=load(_STATUS)
    )
    return _struct("ConversionReview", kind=_leaf("string"), apiVersion=_leaf("string"), response=response)


def expected_admission(version: str) -> Expected:
    """Return the kind that the response of an admission webhook must have. `version` is v1 or v1beta1."""
    other = "v1beta1" if version == "v1" else "v1"
    return Expected(f"admission.k8s.io/{version}", "AdmissionReview", admission_review, (f"admission.k8s.io/{other}",))


def expected_conversion(version: str) -> Expected:
    """Return the kind that the response of a conversion webhook must have. `version` is v1 or v1beta1."""
    other = "v1beta1" if version == "v1" else "v1"
    return Expected(
        f"apiextensions.k8s.io/{version}", "ConversionReview", conversion_review, (f"apiextensions.k8s.io/{other}",)
    )
