"""The options objects of connections (`PodExecOptions`, …), which upstream's OpenAPI documents do not contain.

A request to `pods/exec`, `pods/proxy` and the like has no body. Its query is decoded to an options object, which is the
object of the request in admission.
Upstream: pkg/apis/core/v1/zz_generated.conversion.go, Convert_url_Values_To_v1_PodExecOptions and the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tetrapod.machinery.golang.booleans import query_bool
from tetrapod.machinery.golang.integers import parse_uint
from tetrapod.machinery.gvk import GroupVersionKind, Object
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.types.definitions import node_of

_BOOLEAN: Final = {"type": "boolean"}
_STRING: Final = {"type": "string"}
_STREAMS: Final = {"container": _STRING, "stderr": _BOOLEAN, "stdin": _BOOLEAN, "stdout": _BOOLEAN, "tty": _BOOLEAN}
_PROXY: Final = {"path": _STRING}
_COMMAND: Final = {"type": "array", "items": {"type": "string", "p": "="}, "p": "n"}
_PORTS: Final = {"type": "array", "items": {"type": "integer", "format": "int32", "p": "="}}
_FIELDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "PodAttachOptions": _STREAMS,
    "PodExecOptions": {"command": _COMMAND, **_STREAMS},
    "PodPortForwardOptions": {"ports": _PORTS},
    "PodProxyOptions": _PROXY,
    "ServiceProxyOptions": _PROXY,
    "NodeProxyOptions": _PROXY,
}
CONNECT_PARAMETERS: Final[Mapping[str, Sequence[str]]] = {kind: tuple(fields) for kind, fields in _FIELDS.items()}
"""The names of the query parameters of each kind, sorted."""


def connect_schema(kind: str) -> SchemaNode | None:
    """Return the schema of an options kind, which is shared, or None if the kind is another one."""
    return _SCHEMAS.get(kind)


def connect_options(gvk: GroupVersionKind, query: Mapping[str, Sequence[str]], path: str) -> Object:
    """Return the options object of a request.

    Args:
        gvk: the kind of the options. One that is not among upstream's has only the path.
        query: the values of each query parameter.
        path: the path below the subresource, "" for the subresource itself. Kinds without `path` ignore it.

    Raises:
        ValueError: a port is not a number from 0 to 65535.
    """
    options: Object = {"kind": gvk.kind, "apiVersion": gvk.api_version}
    for name, schema in _FIELDS.get(gvk.kind, _PROXY).items():
        values: Sequence[str] = (path,) if name == "path" else query.get(name) or ()
        value = _value(schema, values)
        if value or "p" in schema:
            options[name] = value
    return options


def _value(schema: Mapping[str, Any], values: Sequence[str]) -> Any:
    if schema is _PORTS:
        return [_port(text) for texts in values for text in texts.split(",")]
    if schema is _COMMAND:
        return list(values) or None
    if schema is _BOOLEAN:
        return bool(values) and query_bool(values[0])
    return values[0] if values else ""


def _port(text: str) -> int:
    """Return the number of a port, raising ValueError with the text of Go's parser.

    Upstream: Convert_Slice_string_To_Slice_int32.
    """
    try:
        return parse_uint(text, 16)
    except ValueError as error:
        raise ValueError(f"cannot convert to []int32: {error}") from None


def _schema(kind: str) -> SchemaNode:
    fields = {"kind": _STRING, "apiVersion": _STRING, **_FIELDS[kind]}
    node = node_of({"type": "object", "properties": fields})
    node.definition = f"io.k8s.api.core.v1.{kind}"
    return node


_SCHEMAS: Final = {kind: _schema(kind) for kind in _FIELDS}
