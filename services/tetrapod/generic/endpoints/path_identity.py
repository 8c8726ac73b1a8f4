"""The name and namespace of an object in a request's body, compared with those of the request's path.

Upstream: staging/src/k8s.io/apiserver/pkg/registry/rest/meta.go, EnsureObjectNamespaceMatchesRequestNamespace;
pkg/endpoints/handlers/rest.go, checkName
"""

from __future__ import annotations

from typing import Any

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import bad_request


def ensure_namespace(obj: Object, expected: str) -> None:
    """Set the namespace of the request on an object, in place.

    Args:
        expected: the namespace of the request; "" for cluster-scoped kinds, whose objects lose their namespace.

    Raises:
        StatusError: 400, the object names another namespace.
    """
    metadata = obj["metadata"]
    namespace = metadata.get("namespace") or ""
    if namespace == expected:
        return
    if not namespace:
        metadata["namespace"] = expected
    elif not expected:
        del metadata["namespace"]
    else:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def check_name(obj: Object, name: str) -> None:
    """Check that the object has the name of the path.

    Raises:
        StatusError: 400, the object has another name or no name.
    """
    object_name: Any = obj["metadata"].get("name") or ""
    if not object_name:
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if object_name != name:
        raise bad_request(f"the name of the object ({object_name}) does not match the name on the URL ({name})")
