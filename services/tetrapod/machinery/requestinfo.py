"""The parts of a request's path: verb, group, version, resource, namespace, name and subresource.

`parse` is the first step of every request; filters, authorization and endpoints read its result. The path was
percent-decoded before; segments such as `..` are kept as they are.

Upstream: k8s.io/apiserver/pkg/endpoints/request/requestinfo.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

from tetrapod.machinery import field_selectors, labels, names
from tetrapod.machinery.boundedcache import bounded
from tetrapod.machinery.golang.booleans import query_bool
from tetrapod.machinery.golang.query import Query


class RequestInfo(msgspec.Struct, frozen=True, gc=False):
    """The parts of a request's path. Parts that a path does not have are empty.

    It is immutable, because requests for the same path share it. A frozen dataclass takes ten times as long to create
    (measured).

    Attributes:
        is_resource_request: whether the path is that of a resource below /api or /apis.
        path: the whole path.
        verb: the API verb for resources (such as "list"), and the lower-case HTTP method for other paths.
        api_prefix: "api" or "apis".
        api_group: the group; "" for the core group.
        api_version: the version without the group, such as "v1".
        namespace: the namespace.
        resource: the plural name.
        subresource: the first segment after the name, such as "status".
        name: the name of the object; also that of the field selector `metadata.name=x` of a list or watch.
        parts: the segments of the path from the resource on: resource, name, subresource and what follows.
        field_selector: the raw selector of the query; set only for lists, watches and deletecollections.
        label_selector: as `field_selector`.
        namespaced: whether the path contains `/namespaces/<namespace>/`; the namespace may be empty.
    """

    is_resource_request: bool
    path: str
    verb: str
    api_prefix: str = ""
    api_group: str = ""
    api_version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    parts: tuple[str, ...] = ()
    field_selector: str = ""
    label_selector: str = ""
    namespaced: bool = False


def scope_of(info: RequestInfo) -> str:
    """Return the scope of a request for metrics and traces.

    Returns:
        "resource" for a request with a name and for creates, "namespace" for other requests in a namespace, "cluster"
        for other requests for resources, and "" for other paths.
    """
    if info.name or info.verb == "create":
        return "resource"
    if info.namespace:
        return "namespace"
    return "cluster" if info.is_resource_request else ""


_LONG_VERBS: Final = frozenset({"watch", "proxy"})
_LONG_SUBRESOURCES: Final = frozenset({"attach", "exec", "proxy", "log", "portforward"})


def is_long_running(info: RequestInfo | None) -> bool:
    """Return whether a request has no time limit: watches, proxies, exec, attach, port-forward, logs and profiles.

    The result is False for None.

    Upstream: BasicLongRunningRequestCheck with kube-apiserver's arguments.
    """
    if info is None:
        return False
    if info.is_resource_request:
        return info.verb in _LONG_VERBS or info.subresource in _LONG_SUBRESOURCES
    return info.path.startswith("/debug/pprof/")


class UnknownRequestError(ValueError):
    """The error for a path that ends at `watch` or `proxy`.

    Upstream responds to such a request with a plain-text 500.
    """


_VERBS: Final = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OF_COLLECTIONS: Final = {"get": "list", "delete": "deletecollection"}
_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})


def parse(method: str, path: str, query: str = "", parameters: Callable[[], Query] | None = None) -> RequestInfo:
    """Parse a request's path, and the query of lists, watches and deletecollections.

    Args:
        method: the HTTP method.
        path: the percent-decoded path.
        query: the raw query string.
        parameters: returns the parsed query, if the caller caches it; called only if the query matters.

    Raises:
        UnknownRequestError: nothing follows `watch` or `proxy` in the path.
    """
    info = _of_path((method, path))
    if info is None:
        raise UnknownRequestError(
            f"unable to determine kind and namespace from url, {f'{path}?{query}' if query else path}"
        )
    selects = query and info.verb in _SELECTING and info.is_resource_request
    if selects and ("watch" in query or "elector" in query or "%" in query):
        info = _with_query(info, (parameters() if parameters is not None else Query(query)).values)
    return info


_SELECTING: Final = frozenset({"list", "deletecollection"})
"""The verbs of collections whose selectors are read from the query."""


@bounded(count=2048, size=4 << 20, largest=8192, weigh_entry=lambda key, _: 1000 + 8 * len(key[1]))
def _of_path(method_and_path: tuple[str, str]) -> RequestInfo | None:
    """Return the parts of a path, or None if nothing follows `watch` or `proxy` in it.

    The result is cached.
    """
    method, path = method_and_path
    parts = path.strip("/").split("/")
    prefix = parts[0]
    if prefix == "api":
        if len(parts) < 3:
            return RequestInfo(False, path, method.lower())
        group, version, at = "", parts[1], 2
    elif prefix == "apis":
        if len(parts) < 4:
            # With three parts, upstream has set the prefix here; it is not read for non-resource requests.
            return RequestInfo(False, path, method.lower())
        group, version, at = parts[1], parts[2], 3
    else:
        return RequestInfo(False, path, method.lower())

    first = parts[at]
    if first in ("watch", "proxy"):
        if len(parts) == at + 1:
            return None
        verb = first
        at += 1
        first = parts[at]
    else:
        verb = _VERBS.get(method, "")

    namespace, namespaced = "", False
    if first == "namespaces":
        length = len(parts)
        if length > at + 1:
            namespace = parts[at + 1]
            if length > at + 2 and parts[at + 2] not in _NAMESPACE_SUBRESOURCES:
                at += 2
                namespaced = True
    rest = parts[at:]
    count = len(rest)
    name = rest[1] if count > 1 else ""
    subresource = rest[2] if count > 2 and verb != "proxy" else ""
    if not name:
        verb = _OF_COLLECTIONS.get(verb, verb)
    return RequestInfo(
        True,
        path,
        verb,
        prefix,
        group,
        version,
        namespace,
        rest[0],
        subresource,
        name,
        tuple(rest),
        namespaced=namespaced,
    )


def _with_query(info: RequestInfo, values: dict[str, str]) -> RequestInfo:
    """Return `info` with the selectors of a query, and with the verb and the name that the query determines.

    The query may turn a list into a watch. The name is that of the field selector `metadata.name=x` of a list or watch.

    Args:
        info: the result of parsing the path.
        values: the value of each parameter of the query.
    """
    fields, of_labels = values.get("fieldSelector", ""), values.get("labelSelector", "")
    verb, name = info.verb, info.name
    if verb == "list":
        if "watch" in values and query_bool(values["watch"]):
            verb = "watch"
        if "metadata.name" in fields:
            name = _name_of(fields, of_labels, values)
    return msgspec.structs.replace(info, verb=verb, name=name, field_selector=fields, label_selector=of_labels)


def _name_of(fields: str, of_labels: str, values: dict[str, str]) -> str:
    """Return the name that `metadata.name=x` selects, if all other options of the list or watch are valid, else "".

    Authorization has not happened yet, so selectors larger than those of real clients are not parsed.

    Args:
        fields: the field selector.
        of_labels: the label selector.
        values: the value of each query parameter.
    """
    if len(fields) + len(of_labels) > _LARGEST_SELECTORS:
        return ""
    try:
        labels.parse(of_labels)
        name = field_selectors.parse(fields).requires_exact_match("metadata.name")
    except ValueError:
        return ""
    if any(option in values and not _is_integer(values[option]) for option in ("limit", "timeoutSeconds")):
        return ""
    return "" if name is None or names.is_path_segment_name(name) else name


_LARGEST_SELECTORS: Final = 8192
"""The most characters of both selectors."""
_is_integer: Final = re.compile("[-+]?[0-9]+", re.ASCII).fullmatch
