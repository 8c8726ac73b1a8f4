"""The path of a request, taken apart (upstream: k8s.io/apiserver/pkg/endpoints/request/requestinfo.go)."""

from __future__ import annotations

from dataclasses import dataclass


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
