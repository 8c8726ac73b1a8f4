"""The path of a request, taken apart: verb, group, version, resource, namespace, name and subresource.

`parse` is the first thing that happens to a request; filters, authorization and the endpoints read its result.
Follows k8s.io/apiserver/pkg/endpoints/request/requestinfo.go. The path is the percent-decoded one, dot segments unresolved.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import itemgetter
from typing import Final
from urllib.parse import parse_qsl, urlencode

from tetrapod.machinery import fields, labels, names

_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(slots=True)
class RequestInfo:
    """What a path asks for. `verb` is the API verb for resources, the lower-case method otherwise."""

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
    """Whether the path has `/namespaces/<namespace>/`, whose namespace may be empty."""


def scope_of(info: RequestInfo) -> str:
    """How much a request is about, as metrics and traces say it (upstream: CleanScope of endpoints/metrics)."""
    if info.name or info.verb == "create":
        return "resource"
    if info.namespace:
        return "namespace"
    return "cluster" if info.is_resource_request else ""


_LONG_VERBS: Final = frozenset({"watch", "proxy"})
_LONG_SUBRESOURCES: Final = frozenset({"attach", "exec", "proxy", "log", "portforward"})


def is_long_running(info: RequestInfo | None) -> bool:
    """Whether it may take as long as it likes (upstream: BasicLongRunningRequestCheck with kube-apiserver's arguments)."""
    if info is None:
        return False
    if info.is_resource_request:
        return info.verb in _LONG_VERBS or info.subresource in _LONG_SUBRESOURCES
    return info.path.startswith("/debug/pprof/")


class UnknownRequestError(ValueError):
    """A path that ends at `watch` or `proxy`: upstream answers such a request with a text 500."""


_VERBS: Final = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})
_FALSE: Final = frozenset({"false", "0"})


def parse(method: str, path: str, query: str = "") -> RequestInfo:
    """Take a request apart; `query` is the raw query string.

    Raises:
        UnknownRequestError: nothing follows `watch` or `proxy`.
    """
    stripped = path.strip("/")
    parts = stripped.split("/")
    prefix = parts[0]
    if prefix == "api":
        if len(parts) < 3:
            return RequestInfo(False, path, method.lower())
        group, version, at = "", parts[1], 2
    elif prefix == "apis":
        if len(parts) < 4:
            # Upstream has set the prefix by then where there are three parts; nobody reads it on non-resource requests.
            return RequestInfo(False, path, method.lower())
        group, version, at = parts[1], parts[2], 3
    else:
        return RequestInfo(False, path, method.lower())

    first = parts[at]
    if first in ("watch", "proxy"):
        if len(parts) == at + 1:
            shown = f"{path}?{query}" if query else path
            raise UnknownRequestError(f"unable to determine kind and namespace from url, {shown}")
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
    info = RequestInfo(True, path, verb, prefix, group, version, namespace, rest[0], subresource, name, tuple(rest), namespaced=namespaced)
    if not name:
        if verb == "delete":
            info.verb = "deletecollection"
        elif verb == "get":
            info.verb = "list"
        if query and verb in ("get", "delete") and ("watch" in query or "elector" in query or "%" in query):
            _read_query(info, query)
    return info


def _read_query(info: RequestInfo, query: str) -> None:
    """Whether a list is a watch, its selectors, and the one name that it may be about (not so on deletecollections)."""
    values = query_values(query)
    info.field_selector = values.get("fieldSelector", "")
    info.label_selector = values.get("labelSelector", "")
    if info.verb == "list":
        if "watch" in values and values["watch"].lower() not in _FALSE:
            info.verb = "watch"
        if "metadata.name" in info.field_selector:
            info.name = _name_of(info, values)


def query_values(query: str) -> dict[str, str]:
    """The first value of each parameter."""
    if not query:
        return {}
    values: dict[str, str] = {}
    for name, value in query_pairs(query):
        values.setdefault(name, value)
    return values


def query_lists(query: str) -> dict[str, list[str]]:
    """All values of each parameter."""
    values: dict[str, list[str]] = {}
    for name, value in query_pairs(query):
        values.setdefault(name, []).append(value)
    return values


def query_pairs(query: str) -> list[tuple[str, str]]:
    """All parameters, decoded as Go's net/url does: pairs with a semicolon or a bad escape are dropped."""
    return parse_qsl(_good_pairs(query), keep_blank_values=True)


def encoded_query(query: str) -> str:
    """What has been understood of a query, written as Go's url.Values.Encode writes it: in order of the names."""
    pairs = parse_qsl(_good_pairs(query), keep_blank_values=True, errors="surrogateescape")
    return urlencode(sorted(pairs, key=itemgetter(0)), errors="surrogateescape")


def _good_pairs(query: str) -> str:
    if ";" in query or ("%" in query and _BAD_ESCAPE.search(query)):
        return "&".join(pair for pair in query.split("&") if ";" not in pair and not _BAD_ESCAPE.search(pair))
    return query


def _name_of(info: RequestInfo, values: dict[str, str]) -> str:
    """`metadata.name=x` names the one object that a list or watch is about, if all its other options can be read."""
    try:
        labels.parse(info.label_selector)
        name = fields.parse(info.field_selector).requires_exact_match("metadata.name")
    except ValueError:
        return ""
    if any(option in values and not _is_integer(values[option]) for option in ("limit", "timeoutSeconds")):
        return ""
    return "" if name is None or names.is_path_segment_name(name) else name


_is_integer: Final = re.compile("[-+]?[0-9]+", re.ASCII).fullmatch
