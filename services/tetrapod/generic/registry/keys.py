"""Keys of objects relative to the prefix of their resource: `namespace/name`, or `name`.

Upstream: staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go, NamespaceKeyFunc, NoNamespaceKeyFunc
"""

from __future__ import annotations

from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.names import is_path_segment_name
from tetrapod.machinery.status import StatusError, bad_request

_DOTS = (".", "..")


def object_key(namespaced: bool, namespace: str, name: str, prefix: str = "") -> str:
    """Return the key of an object below its resource's prefix: `namespace/name`, or `name` if cluster-scoped.

    Args:
        namespaced: whether the objects of the resource have namespaces.
        namespace: the namespace; ignored in the key of a cluster-scoped resource.
        name: the name of the object.
        prefix: the storage prefix of the resource, for error texts.

    Raises:
        StatusError: 400, the name or a necessary namespace is missing, the namespace is "." or "..", or the name is one
            of these or has a slash or a percent sign.
    """
    if namespaced and not namespace:
        raise bad_request("Namespace parameter required.")
    if not name:
        raise bad_request("Name parameter required.")
    if "/" in name or "%" in name or name in _DOTS:
        raise _bad_name(name)
    if namespace in _DOTS:
        raise _bad_key(f"/{prefix}/{namespace}/{name}")
    return f"{namespace}/{name}" if namespaced else name


def root_key(namespaced: bool, namespace: str, prefix: str = "") -> str:
    """Return the prefix of the keys of a namespace ("ns/"), or "" for all namespaces and cluster-scoped resources.

    Args:
        prefix: the storage prefix of the resource, for error texts.

    Raises:
        StatusError: 400, the namespace is "." or ".."; its form is not validated otherwise.
    """
    if namespace in _DOTS:
        raise _bad_key(f"/{prefix}/{namespace}")
    return f"{namespace}/" if namespaced and namespace else ""


def _bad_name(name: str) -> StatusError:
    return bad_request(f"Name parameter invalid: {go_quote(name)}: {';'.join(is_path_segment_name(name))}")


def _bad_key(key: str) -> StatusError:
    return bad_request(f"invalid key: {go_quote(key)}")
