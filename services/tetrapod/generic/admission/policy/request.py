"""What expressions see of a request: `request`, `namespaceObject` (upstream: CreateAdmissionRequest, CreateNamespaceObject)."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.generic.admission.interface import Attributes, Equivalent
from tetrapod.machinery.gvk import GroupVersionKind, GroupVersionResource, Object

_HIDDEN: Final = ("managedFields", "ownerReferences", "selfLink")


def admission_request(attributes: Attributes, seen_as: Equivalent) -> Object:
    """As `encoding/json` would show it: what is empty and may be, is left out."""
    user = attributes.user
    info: Object = {}
    if user.name:
        info["username"] = user.name
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    request: Object = {
        "uid": "",
        "kind": _kind(seen_as.kind),
        "resource": _resource(seen_as.resource),
        "requestKind": _kind(attributes.kind),
        "requestResource": _resource(attributes.resource),
        "operation": attributes.operation,
        "userInfo": info,
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    }
    if attributes.subresource:
        request["subResource"] = request["requestSubResource"] = attributes.subresource
    if attributes.name:
        request["name"] = attributes.name
    if attributes.namespace:
        request["namespace"] = attributes.namespace
    return request


def _kind(kind: GroupVersionKind) -> Object:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _resource(resource: GroupVersionResource) -> Object:
    return {"group": resource.group, "version": resource.version, "resource": resource.resource}


def namespace_object(namespace: Object | None) -> Any:
    if namespace is None:
        return None
    metadata = {key: value for key, value in namespace["metadata"].items() if key not in _HIDDEN}
    shown: Object = {"metadata": metadata, "spec": namespace.get("spec") or {}, "status": namespace.get("status") or {}}
    return shown
