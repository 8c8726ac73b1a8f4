"""`ResourcePaths`: the OpenAPI paths of one version of a resource, with their operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tetrapod.generic.openapi.descriptions import operation_text
from tetrapod.generic.openapi.operations import (
    BUILTIN_TYPES,
    DELETE_COLLECTION_PARAMETERS,
    DELETE_PARAMETERS,
    LIST_PARAMETERS,
    LOG_PARAMETERS,
    META,
    PATCH_PARAMETERS,
    PATCH_TYPES,
    WRITE_PARAMETERS,
    Operation,
    operation_id,
    path_item,
    streamed,
    tag,
)
from tetrapod.machinery.gvk import GroupVersionKind, Object
from tetrapod.machinery.types.connect_options import CONNECT_PARAMETERS

_PROXY_METHODS: Final = ("delete", "get", "head", "options", "patch", "post", "put")


@dataclass(frozen=True, slots=True)
class SubresourcePaths:
    """The facts about one subresource that determine its OpenAPI paths.

    Attributes:
        name: the name of the subresource.
        verbs: the supported verbs.
        kind: the kind of request and response bodies, which may differ from that of the resource.
        definition: the name of the schema of that kind; "" for connect subresources.
    """

    name: str
    verbs: Sequence[str]
    kind: GroupVersionKind
    definition: str


@dataclass(frozen=True, slots=True)
class ResourcePaths:
    """The facts about one version of a resource that determine its OpenAPI paths.

    Attributes:
        gvk: the group, version and kind.
        plural: the name of the resource.
        namespaced: whether objects are namespaced.
        verbs: the supported verbs.
        definition: the name of the schema of an object.
        list_definition: the name of the schema of a list; "" if the resource cannot be listed.
        subresources: the subresources.
        returns_deleted: whether DELETE responds with the object instead of a Status.
        produces: the media types of responses.
        patch_types: the media types of patches.
        watch_paths: whether the deprecated paths below `/watch/` are included.
    """

    gvk: GroupVersionKind
    plural: str
    namespaced: bool
    verbs: Sequence[str]
    definition: str
    list_definition: str
    subresources: Sequence[SubresourcePaths] = ()
    returns_deleted: bool = False
    produces: Sequence[str] = BUILTIN_TYPES
    patch_types: Sequence[str] = PATCH_TYPES
    watch_paths: bool = True

    def paths(self) -> dict[str, Object]:
        """Return new path items by path. Paths without operations are left out."""
        items = {}
        for path, operations in self._operations():
            listed = [self._with_text(operation, path) for operation in operations]
            if listed:
                items[path] = path_item(path, listed)
        return items

    def _with_text(self, operation: Operation, path: str) -> Operation:
        subresource = path.partition("/{name}/")[2].partition("/")[0]
        watched = "watch" in self.verbs
        return replace(
            operation,
            text=operation_text(operation.action, operation.method, self.gvk.kind, subresource, watched=watched),
        )

    @property
    def _root(self) -> str:
        group, version, _ = self.gvk
        return f"/apis/{group}/{version}" if group else f"/api/{version}"

    @property
    def _place(self) -> str:
        return "/namespaces/{namespace}" if self.namespaced else ""

    def _id(self, verb: str, subject: str) -> str:
        return operation_id(verb, self.gvk.group, self.gvk.version, subject)

    @property
    def _scoped(self) -> str:
        return ("Namespaced" if self.namespaced else "") + self.gvk.kind

    def _operation(self, method: str, verb: str, subject: str, answer: str, **more: object) -> Operation:
        fields: dict[str, object] = {"action": method, "kind": self.gvk, "produces": self.produces, **more}
        fields["query"] = (*fields.get("query", ()), "pretty")  # type: ignore[misc]
        return Operation(method, self._id(verb, subject), tag(self.gvk.group, self.gvk.version), answer, **fields)  # type: ignore[arg-type]

    def _operations(self) -> Iterator[tuple[str, Iterator[Operation]]]:
        collection = f"{self._root}{self._place}/{self.plural}"
        yield collection, self._collection()
        yield f"{collection}/{{name}}", self._item()
        for sub in self.subresources:
            path = f"{collection}/{{name}}/{sub.name}"
            if sub.kind.kind in CONNECT_PARAMETERS:
                yield path, self._connect(sub, "")
                if "path" in CONNECT_PARAMETERS[sub.kind.kind]:
                    yield f"{path}/{{path}}", self._connect(sub, "WithPath")
            else:
                yield path, self._subresource(sub)
        if self.namespaced and "list" in self.verbs:
            yield f"{self._root}/{self.plural}", iter([self._list(f"{self.gvk.kind}ForAllNamespaces")])
        if "watch" in self.verbs and self.watch_paths:
            yield from self._watches()

    def _list(self, subject: str) -> Operation:
        types = streamed(self.produces)
        return self._operation(
            "get", "list", subject, self.list_definition, action="list", query=LIST_PARAMETERS, produces=types
        )

    def _collection(self) -> Iterator[Operation]:
        if "list" in self.verbs:
            yield self._list(self._scoped)
        if "create" in self.verbs:
            yield self._create("create", self._scoped, self.definition, self.gvk)
        if "deletecollection" in self.verbs:
            yield self._operation(
                "delete",
                "delete",
                f"Collection{self._scoped}",
                META + "Status",
                action="deletecollection",
                query=DELETE_COLLECTION_PARAMETERS,
                body=META + "DeleteOptions",
                body_required=False,
            )

    def _create(self, verb: str, subject: str, definition: str, kind: GroupVersionKind) -> Operation:
        codes = ("200", "201", "202")
        return self._operation(
            "post", verb, subject, definition, kind=kind, query=WRITE_PARAMETERS, body=definition, codes=codes
        )

    def _read(self, subject: str, definition: str, kind: GroupVersionKind) -> Operation:
        return self._operation("get", "read", subject, definition, kind=kind)

    def _replace(self, subject: str, definition: str, kind: GroupVersionKind) -> Operation:
        return self._operation(
            "put",
            "replace",
            subject,
            definition,
            kind=kind,
            query=WRITE_PARAMETERS,
            body=definition,
            codes=("200", "201"),
        )

    def _patch(self, subject: str, definition: str, kind: GroupVersionKind) -> Operation:
        return self._operation(
            "patch",
            "patch",
            subject,
            definition,
            kind=kind,
            query=PATCH_PARAMETERS,
            body=META + "Patch",
            body_types=self.patch_types,
            codes=("200", "201"),
        )

    def _item(self) -> Iterator[Operation]:
        subject, definition, kind = self._scoped, self.definition, self.gvk
        if "get" in self.verbs:
            yield self._read(subject, definition, kind)
        if "update" in self.verbs:
            yield self._replace(subject, definition, kind)
        if "patch" in self.verbs:
            yield self._patch(subject, definition, kind)
        if "delete" in self.verbs:
            yield self._operation(
                "delete",
                "delete",
                subject,
                definition if self.returns_deleted else META + "Status",
                query=DELETE_PARAMETERS,
                body=META + "DeleteOptions",
                body_required=False,
                codes=("200", "202"),
            )

    def _subresource(self, sub: SubresourcePaths) -> Iterator[Operation]:
        subject, definition, kind = self._scoped + sub.name.capitalize(), sub.definition, sub.kind
        if sub.name == "log":
            yield self._operation(
                "get", "read", subject, "", query=LOG_PARAMETERS, produces=(*self.produces, "text/plain")
            )
            return
        if "get" in sub.verbs:
            yield self._read(subject, definition, kind)
        if "update" in sub.verbs:
            yield self._replace(subject, definition, kind)
        if "patch" in sub.verbs:
            yield self._patch(subject, definition, kind)
        if "create" in sub.verbs:
            yield self._create("create", subject, definition, kind)

    def _connect(self, sub: SubresourcePaths, suffix: str) -> Iterator[Operation]:
        query = CONNECT_PARAMETERS[sub.kind.kind]
        methods = _PROXY_METHODS if "path" in query else ("get", "post")
        for method in methods:
            subject = method.capitalize() + self._scoped + sub.name.capitalize() + suffix
            yield Operation(
                method,
                self._id("connect", subject),
                tag(self.gvk.group, self.gvk.version),
                "",
                action="connect",
                kind=sub.kind,
                query=query,
                produces=("*/*",),
            )

    def _watches(self) -> Iterator[tuple[str, Iterator[Operation]]]:
        everywhere = "ForAllNamespaces" if self.namespaced else ""
        yield f"{self._root}/watch/{self.plural}", iter([self._watch(f"{self.gvk.kind}List{everywhere}", "watchlist")])
        scoped = f"{self._root}/watch{self._place}/{self.plural}"
        if self.namespaced:
            yield scoped, iter([self._watch(f"{self._scoped}List", "watchlist")])
        yield f"{scoped}/{{name}}", iter([self._watch(self._scoped, "watch")])

    def _watch(self, subject: str, action: str) -> Operation:
        types = streamed(self.produces)
        return self._operation(
            "get", "watch", subject, META + "WatchEvent", action=action, query=LIST_PARAMETERS, produces=types
        )
