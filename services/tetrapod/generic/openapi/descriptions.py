"""Descriptions of operations and their parameters.

Parameter descriptions are the comments of the option types' fields (k8s.io/apimachinery/pkg/apis/meta/v1/types.go and
core/v1, Apache-2.0), stored as data beside this file.
Upstream: the Doc() of each route in k8s.io/apiserver/pkg/endpoints/installer.go.
"""

from __future__ import annotations

from collections.abc import Container
from functools import cache
from importlib.resources import files
from typing import Final

import orjson

_ITEM: Final = "filtered to a single item with the 'fieldSelector' parameter."
_DEPRECATED: Final = "deprecated: use the 'watch' parameter with a list operation instead"
_OF_ITEM: Final = {"get": "read", "put": "replace", "patch": "partially update"}


def operation_text(action: str, method: str, kind: str, subresource: str = "", *, watched: bool = False) -> str:
    """Return the description of an operation.

    Args:
        action: the value of `x-kubernetes-action`.
        method: the HTTP method, for connect operations.
        kind: the kind of the resource, even if the subresource has another kind.
        subresource: the subresource; "" for the resource itself.
        watched: whether the resource supports watch, which a list then mentions.
    """
    prefix = f"{subresource} of " if subresource else ""
    if action in _OF_ITEM:
        return f"{_OF_ITEM[action]} {prefix}the specified {kind}"
    match action:
        case "list":
            return f"list{' or watch' if watched else ''} objects of kind {kind}"
        case "post":
            return f"create {prefix}{_with_article(kind)}"
        case "delete":
            return f"delete {prefix}{_with_article(kind)}"
        case "deletecollection":
            return f"delete collection of {kind}"
        case "watch":
            return f"watch changes to an object of kind {kind}. {_DEPRECATED}, {_ITEM}"
        case "watchlist":
            return f"watch individual changes to a list of {kind}. {_DEPRECATED}."
    return f"connect {method.upper()} requests to {subresource} of {kind}"


def _with_article(noun: str) -> str:
    if noun.endswith("s") and not noun.endswith("ss"):  # a plural
        return noun
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"


def query_text(name: str, context: Container[str]) -> str:
    """Return the description of a query parameter, or "" if it is unknown.

    Args:
        name: the name of the parameter.
        context: the segments of the path, such as "pods" and "log", and the HTTP method in lower case. Some names have
            another description for certain resources, subresources or PATCH.
    """
    description = _texts().get(name, "")
    return (
        description
        if isinstance(description, str)
        else next((text for key, text in description.items() if key in context), description.get("", ""))
    )


def path_text(name: str, kind: str) -> str:
    """Return the description of a path parameter of a resource of this kind, or "" if the parameter is unknown."""
    if name == "name":
        return f"name of the {kind}"
    text = _texts().get(name, "")
    return text if isinstance(text, str) else text["in path"]


@cache
def _texts() -> dict[str, str | dict[str, str]]:
    texts: dict[str, str | dict[str, str]] = orjson.loads(
        files(__package__).joinpath("data/parameters.json").read_bytes()
    )
    return texts
