"""AdmissionRequests without their objects, for webhooks and the variables of CEL expressions.

Upstream: CreateAdmissionRequest, CreateNamespaceObject
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.generic.admission.interface import Attributes, Equivalent
from tetrapod.generic.authentication.delegating import user_to_wire
from tetrapod.machinery.gvk import GroupVersionKind, GroupVersionResource, Object

_HIDDEN: Final = ("managedFields", "ownerReferences", "selfLink")


def describe(attributes: Attributes, matched_kind: Equivalent, uid: str = "") -> Object:
    """Return an AdmissionRequest without `object`, `oldObject`, `options` and `dryRun`.

    The fields are in the order of Go's struct; optional fields that are empty are left out.

    Args:
        attributes: the request.
        matched_kind: the resource and kind under which the webhook or policy matched the request.
        uid: the value of the field `uid`, which identifies the request to a webhook.
    """
    request: Object = {"uid": uid, "kind": _kind(matched_kind.kind), "resource": _resource(matched_kind.resource)}
    if attributes.subresource:
        request["subResource"] = attributes.subresource
    request["requestKind"], request["requestResource"] = _kind(attributes.kind), _resource(attributes.resource)
    if attributes.subresource:
        request["requestSubResource"] = attributes.subresource
    if attributes.name:
        request["name"] = attributes.name
    if attributes.namespace:
        request["namespace"] = attributes.namespace
    request["operation"] = attributes.operation
    request["userInfo"] = user_to_wire(attributes.user)
    return request


def _kind(kind: GroupVersionKind) -> Object:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _resource(resource: GroupVersionResource) -> Object:
    return {"group": resource.group, "version": resource.version, "resource": resource.resource}


def admission_request(attributes: Attributes, matched_kind: Equivalent) -> Object:
    """Return the value of the variable `request` of CEL expressions: an AdmissionRequest without its objects.

    Args:
        attributes: the request.
        matched_kind: the resource and kind under which the policy or webhook matched the request.
    """
    return {**describe(attributes, matched_kind), "dryRun": attributes.dry_run, "options": attributes.options or None}


def namespace_object(namespace: Object | None) -> Any:
    """Return the value of the variable `namespaceObject` of CEL expressions; None if `namespace` is None.

    Managed fields and owner references are left out.
    """
    if namespace is None:
        return None
    metadata = {key: value for key, value in namespace["metadata"].items() if key not in _HIDDEN}
    reduced: Object = {
        "metadata": metadata,
        "spec": namespace.get("spec") or {},
        "status": namespace.get("status") or {},
    }
    return reduced
