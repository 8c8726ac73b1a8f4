"""The cases of the short form: the requests that once stalled the server, and one case for each parser."""

from __future__ import annotations

from typing import Final

from stall.case import Case
from stall.cases import CASES

_NAMES: Final = (
    "label selector: existing keys",
    "field selector: terms",
    "query: parameters of a list",
    "path: escaped quotes",
    "path: many long paths",
    "Accept: clauses",
    "X-Remote-Group: headers",
    "Impersonate-Group: headers",
    "headers of many names",
    "chunks of one byte",
    "pipelining: GETs of a user",
    "JSON: entries of data",
    "JSON: bad keys of data",
    "JSON: duplicate keys",
    "JSON: unknown fields, strict",
    "JSON: long number",
    "JSON: escapes",
    "JSON: nested lists",
    "YAML: entries",
    "YAML: aliases",
    "YAML: literal block",
    "YAML: nested blocks",
    "protobuf: unknown fields",
    "metadata: bad labels",
    "metadata: bad finalizers",
    "metadata: owner references",
    "metadata: managers of many fields",
    "JSON patch: add at the head of a long list",
    "JSON patch: move a long list",
    "JSON patch: copy what was copied",
    "strategic merge patch: $patch: delete",
    "strategic merge patch: order of env",
    "strategic merge patch: ports of a Service",
    "apply: env",
    "apply: list as a map",
    "self review: raw label selector",
    "self review: label requirements",
    "list: Table",
    "list: selector that all match",
    "custom resource: list as a set of objects",
    "custom resource: pattern",
    "Pod: volumes",
    "Pod: one port again and again",
    "Role: a hundred rules",
    "Role: verbs, groups and resources",
    "NetworkPolicy: peers",
    "policy: each",
    "policy: labels",
    "webhook: entries of data, patched",
    "conversion: list of objects",
    "audit: entries of data",
)

SHORT: Final[list[Case]] = [case for case in CASES if case.name in _NAMES]

_OVER_HTTP2: Final = (
    "label selector: existing keys",
    "X-Remote-Group: headers",
    "headers of many names",
    "chunks of one byte",
    "pipelining: GETs of a user",
    "JSON: entries of data",
)

SHORT_OVER_HTTP2: Final[list[Case]] = [case for case in SHORT if case.name in _OVER_HTTP2]
"""The cases that are sent over HTTP/2 too: those whose heads and bodies its frames carry in another way."""
