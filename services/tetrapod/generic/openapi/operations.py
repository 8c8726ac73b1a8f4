"""`Operation`: one method of a path in an OpenAPI v3 document; `path_item` joins the operations of a path.

Upstream creates routes (k8s.io/apiserver/pkg/endpoints/installer.go) and derives the document from them (kube-openapi's
builder3). Here operations are created directly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tetrapod.generic.openapi.descriptions import path_text, query_text
from tetrapod.machinery.gvk import GroupVersionKind, Object

REF: Final = "#/components/schemas/"
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
BUILTIN_TYPES: Final = ("application/json", "application/vnd.kubernetes.protobuf", "application/yaml")
CUSTOM_TYPES: Final = ("application/json", "application/yaml")
_STREAMED: Final = ("application/json", "application/vnd.kubernetes.protobuf")

LIST_PARAMETERS: Final = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
    "watch",
)
WRITE_PARAMETERS: Final = ("dryRun", "fieldManager", "fieldValidation")
PATCH_PARAMETERS: Final = (*WRITE_PARAMETERS, "force")
DELETE_PARAMETERS: Final = (
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
)
DELETE_COLLECTION_PARAMETERS: Final = (*(set(LIST_PARAMETERS) - {"allowWatchBookmarks", "watch"}), *DELETE_PARAMETERS)
LOG_PARAMETERS: Final = (
    "container",
    "follow",
    "insecureSkipTLSVerifyBackend",
    "limitBytes",
    "previous",
    "sinceSeconds",
    "stream",
    "tailLines",
    "timestamps",
)
_TYPES: Final = {
    **dict.fromkeys(
        ("gracePeriodSeconds", "limit", "limitBytes", "ports", "sinceSeconds", "tailLines", "timeoutSeconds"), "integer"
    ),
    **dict.fromkeys(
        (
            "allowWatchBookmarks",
            "follow",
            "force",
            "ignoreStoreReadErrorWithClusterBreakingPotential",
            "insecureSkipTLSVerifyBackend",
            "orphanDependents",
            "previous",
            "sendInitialEvents",
            "stderr",
            "stdin",
            "stdout",
            "timestamps",
            "tty",
            "watch",
        ),
        "boolean",
    ),
}
PATCH_TYPES: Final = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)


_REASONS: Final = {"200": "OK", "201": "Created", "202": "Accepted"}


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of a path.

    Attributes:
        method: the HTTP method in lower case.
        id: the operationId.
        tag: the tag.
        answer: the name of the schema of successful responses; "" for a string.
        codes: the status codes of successful responses.
        action: the value of `x-kubernetes-action`; "" to omit it.
        kind: the value of `x-kubernetes-group-version-kind`; None to omit it.
        query: the names of the query parameters.
        body: the name of the schema of the request body; "" for requests without one.
        body_types: the media types of the request body.
        body_required: whether the request must have a body.
        produces: the media types of successful responses.
        text: the description.
    """

    method: str
    id: str
    tag: str
    answer: str
    codes: Sequence[str] = ("200",)
    action: str = ""
    kind: GroupVersionKind | None = None
    query: Sequence[str] = ()
    body: str = ""
    body_types: Sequence[str] = ("*/*",)
    body_required: bool = True
    produces: Sequence[str] = BUILTIN_TYPES
    text: str = ""

    def document(self) -> Object:
        """Return the operation object of OpenAPI v3, without its parameters, which `path_item` adds."""
        content = {media_type: {"schema": _schema(self.answer)} for media_type in self.produces}
        operation: Object = {"tags": [self.tag], "description": self.text, "operationId": self.id}
        if self.body:
            operation["requestBody"] = {
                "content": {media_type: {"schema": _schema(self.body)} for media_type in self.body_types}
            }
            if self.body_required:
                operation["requestBody"]["required"] = True
        answers = {code: {"description": _REASONS[code], "content": content} for code in self.codes}
        operation["responses"] = {**answers, "401": {"description": "Unauthorized"}}
        if self.action:
            operation["x-kubernetes-action"] = self.action
        if self.kind is not None:
            operation["x-kubernetes-group-version-kind"] = {
                "group": self.kind.group,
                "version": self.kind.version,
                "kind": self.kind.kind,
            }
        return operation


def _schema(definition: str) -> Object:
    return {"$ref": REF + definition} if definition else {"type": "string"}


def streamed(produces: Sequence[str]) -> tuple[str, ...]:
    """Return the media types of a list or watch: those of `produces`, each followed by its `;stream=watch` variant.

    Media types that cannot be streamed have no such variant.
    """
    return tuple(t for name in produces for t in ((name, f"{name};stream=watch") if name in _STREAMED else (name,)))


def path_item(path: str, operations: Iterable[Operation]) -> Object:
    """Return the path item of a path with these operations.

    Parameters of the path, and query parameters that all operations have, become parameters of the path item.
    """
    listed = list(operations)
    parts = path.split("/")
    in_path = [part[1:-1] for part in parts if part.startswith("{")]
    shared = set(listed[0].query).intersection(*(operation.query for operation in listed[1:])) if listed else set()
    item: Object = {}
    for operation in listed:
        document = operation.document()
        own = sorted(set(operation.query) - shared)
        if own:
            context = {*parts, operation.method}
            document["parameters"] = [_query(name, context) for name in own]
        item[operation.method] = document
    kind = listed[0].kind.kind if listed and listed[0].kind is not None else ""
    parameters = sorted(
        [("path", name) for name in in_path] + [("query", name) for name in shared], key=lambda p: (p[1], p[0])
    )
    if parameters:
        item["parameters"] = [
            _in_path(name, kind) if where == "path" else _query(name, set(parts)) for where, name in parameters
        ]
    return item


def _query(name: str, context: set[str]) -> Object:
    schema = {"type": _TYPES.get(name, "string"), "uniqueItems": True}
    return {"in": "query", "name": name, "description": query_text(name, context), "schema": schema}


def _in_path(name: str, kind: str) -> Object:
    schema: dict[str, Any] = {"type": "string", "uniqueItems": True}
    return {"in": "path", "name": name, "description": path_text(name, kind), "required": True, "schema": schema}


def operation_part(text: str, capitalize: bool) -> str:
    """Return a text as part of an operation id, such as `rbacAuthorization` for `rbac.authorization`.

    Characters other than letters, digits and underscores are removed, and the letter after them is capitalized.
    `capitalize` applies to the first letter.

    Upstream: k8s.io/apiserver/pkg/endpoints/openapi/openapi.go, GetOperationIDAndTagsFromRoute, ToValidOperationID
    """
    out = []
    for position, char in enumerate(text):
        if char.isalpha() or char == "_" or (position and char.isdigit()):
            out.append(char.upper() if capitalize else char)
            capitalize = False
        else:
            capitalize = True
    return "".join(out)


def operation_id(verb: str, group: str, version: str, subject: str) -> str:
    """Return an operation id: `list`, `apps`, `v1`, `NamespacedDeployment` become `listAppsV1NamespacedDeployment`.

    Args:
        verb: the beginning, such as `list`.
        group: the API group; "" becomes `Core`.
        version: the version; "" for none.
        subject: the end: what the operation is for, such as `NamespacedDeployment`.
    """
    parts = (group.removesuffix(".k8s.io") or "core", version, subject)
    return verb + "".join(operation_part(part, True) for part in parts if part)


def tag(group: str, version: str = "") -> str:
    """Return the tag of a group, or of a group-version: `rbacAuthorization_v1`."""
    name = operation_part(group.removesuffix(".k8s.io") or "core", False)
    return f"{name}_{operation_part(version, False)}" if version else name
