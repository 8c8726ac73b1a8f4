"""The fields of messages, read from `data/` one package at a time, and the message of each kind.

Each line of `data/PACKAGE.messages` is a message: its name, a space, and a map from field numbers to [JSON name, type,
label]. A type that begins with a dot is in the same package.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

import orjson

from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind
from tetrapod.machinery.types.definitions import definition_of

APIMACHINERY: Final = "io.k8s.apimachinery.pkg."
META: Final = APIMACHINERY + "apis.meta.v1."
APIEXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
PARTIAL_LIST: Final = "PartialObjectMetadataList"
FORMER: Final[Mapping[tuple[str, str], str]] = {("policy/v1beta1", "PodDisruptionBudget"): "policy/v1"}
"""Kinds by the apiVersion in which former releases stored them, and the served version with the same message."""
_RANGE_ALLOCATION: Final = ("v1", "RangeAllocation")
"""A kind that is stored and not served, so that OpenAPI does not define it."""

_PACKAGES: Final = {
    "meta.k8s.io/v1": META,
    "meta.k8s.io/v1beta1": META,
    "apidiscovery.k8s.io/v2": "io.k8s.api.apidiscovery.v2.",
    "": META,  # the document at /api has a kind but no apiVersion
    "v1": META,  # APIGroup, APIResourceList, Status, …
}


class UnknownMessageError(KeyError):
    """The error for a kind or message that has no protobuf form."""


class Field(NamedTuple):
    """A field of a message.

    Attributes:
        number: the field number.
        name: the JSON name.
        type: a scalar such as "int32", or the name of a message.
        label: "" for a single value, "repeated" for a list, "map" for a map from strings to `type`, and "inline" for a
            Go struct embedded in its owner. In JSON the fields of an inline struct belong to the owner; on the wire it
            is a message of its own.
    """

    number: int
    name: str
    type: str
    label: str


@cache
def fields(message: str) -> tuple[Field, ...]:
    """Return the fields of a message ("io.k8s.api.core.v1.PodSpec").

    Raises:
        UnknownMessageError: the message does not exist.
    """
    package, _, name = message.rpartition(".")
    try:
        line = _package(package)[name.encode()]
    except (KeyError, FileNotFoundError):
        raise UnknownMessageError(message) from None
    return tuple(
        Field(int(number), name, package + type_ if type_.startswith(".") else type_, label)
        for number, (name, type_, label) in orjson.loads(line).items()
    )


@cache
def _package(package: str) -> dict[bytes, bytes]:
    data = files(__package__).joinpath(f"data/{package}.messages").read_bytes()
    return {name: line for name, _, line in (line.partition(b" ") for line in data.splitlines())}


@cache
def message_of(api_version: str, kind: str) -> str:
    """Return the name of the message of a built-in kind.

    Raises:
        UnknownMessageError: the kind has no message.
    """
    api_version = FORMER.get((api_version, kind), api_version)
    if (api_version, kind) == _RANGE_ALLOCATION:
        return "io.k8s.api.core.v1.RangeAllocation"
    if api_version == "meta.k8s.io/v1beta1" and kind == PARTIAL_LIST:
        return APIMACHINERY + "apis.meta.v1beta1." + kind
    try:
        group, version = GroupVersion.parse(api_version)
        message = definition_of(GroupVersionKind(group, version, kind))
    except (KeyError, ValueError):
        message = _PACKAGES.get(api_version, "") + kind
    fields(message)
    return message
