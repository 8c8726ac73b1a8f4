"""`Kind`: the declaration of a resource, from which everything else is derived."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tetrapod.generic.aggregated.versions import CompiledSchema, Converter, Version
from tetrapod.generic.openapi.custom import CustomKind
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition, Subresource
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import GroupKind, GroupVersion, Object
from tetrapod.machinery.schema import defaulting
from tetrapod.machinery.schema.validation import validate
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.table import Column, TableConvertor
from tetrapod.machinery.timed_cells import since
from tetrapod.machinery.version_order import priority_key

_STORED: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_COMPUTED: Final = {"get": Rest.get, "list": Rest.list, "create": Rest.create}


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column of `kubectl get`.

    Attributes:
        name: the heading.
        value: returns the cell of an object: a string, a number, a boolean or None.
        type: the OpenAPI type of the cells: "string", "integer", "number", "boolean" or "date".
        priority: 0 to show the column always, above 0 to show it only with `-o wide`.
        description: the text for clients that render tables.
    """

    name: str
    value: Callable[[Object], Any]
    type: str = "string"
    priority: int = 0
    description: str = ""


class KindStrategy(Strategy):
    """The strategy of a kind: it applies the schema's defaults and validates objects by their schema.

    Override `rules` for further validation, and the other hooks of `Strategy` for further behaviour. The hooks get
    objects in the storage version.
    """

    generation = ("spec",)
    qualified_finalizers = False

    def __init__(self) -> None:
        """Create the strategy; `bind` attaches it to its kind."""
        self.node: SchemaNode | None = None
        self._nodes: Mapping[str, SchemaNode] = {}
        self._converter: Converter | None = None

    def bind(self, kind: Kind) -> None:
        """Set the schema, the scope and the status subresource of the strategy to those of the kind.

        The server calls it once for each kind.
        """
        self.node, self.namespaced, self.has_status = kind.node, kind.namespaced, kind.has_status
        self._nodes, self._converter = kind.nodes, kind.converter if kind.versions else None

    def default(self, obj: Object, version: str) -> None:
        """Set missing fields of `obj` to the defaults of the schema of this version, in place."""
        if (node := self._nodes.get(version, self.node)) is not None:
            defaulting.apply(node, obj)

    def rules(self, ctx: Context, new: Object, old: Object | None) -> list[FieldError]:
        """Return further errors of an object.

        Called only if the object is valid by its schema. The default returns [].

        Args:
            ctx: the request.
            new: the new object.
            old: the existing object, or None for a create.
        """
        return []

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        """Return the errors of a new object: those of the schema or, if it is valid by its schema, those of `rules`."""
        return self.schema_errors(obj, ctx.version) or self.rules(ctx, obj, None)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        """Return the errors of an update: those of the schema or, if it is valid by its schema, those of `rules`."""
        return self.schema_errors(new, ctx.version) or self.rules(ctx, new, old)

    def schema_errors(self, obj: Object, version: str = "") -> list[FieldError]:
        """Return the errors of an object by its schema, or [] before `bind`.

        Args:
            obj: the object in the storage version.
            version: another version, whose schema is checked first; "" or the storage version for none.
        """
        if self.node is None:
            return []
        errors: list[FieldError] = []
        if self._converter is not None and (node := self._nodes.get(version, self.node)) is not self.node:
            errors = validate(node, self._converter.convert(obj, version))
        return errors or validate(self.node, obj)

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        """Return [("status",)] if there is a status subresource, else [].

        Writes to the main resource ignore these fields. `version` is not used.
        """
        return [("status",)] if self.has_status else []


class _KindStatusStrategy(StatusStrategy):
    """The strategy of the status subresource of a kind."""

    def __init__(self, main: KindStrategy) -> None:
        super().__init__(main)
        self._kind = main

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        """Return the errors of the new object by its schema."""
        return self._kind.schema_errors(new, ctx.version)


@dataclass(frozen=True)
class Kind(CompiledSchema):
    """A kind that the server serves.

    Attributes:
        api_version: `group/version`; objects are stored in this version.
        kind: the kind in CamelCase.
        schema: the schema of the whole object, as a JSON schema or a pydantic model. If it has a property `status`,
            there is a status subresource.
        plural: the name of the resource; "" adds an "s" to the kind in lower case.
        namespaced: whether objects are namespaced.
        columns: the columns of `kubectl get` between name and age. They get objects in the storage version.
        short_names: the short names for kubectl.
        categories: the categories for kubectl, such as "all".
        strategy: the rules of the kind. Each kind needs its own instance.
        rest: handles requests instead of a store, for computed objects such as metrics. None stores the objects.
        versions: further versions in which the objects are served, in any order.

    Raises:
        ValueError: two versions have the same name, or a computed kind has several; when the schema is first used, if
            it cannot be converted to a structural schema.
    """

    api_version: str
    kind: str
    schema: Any
    plural: str = ""
    namespaced: bool = True
    columns: Sequence[PrinterColumn] = ()
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    strategy: KindStrategy = field(default_factory=KindStrategy)
    rest: Rest | None = None
    versions: Sequence[Version] = ()

    def __post_init__(self) -> None:
        """Check the versions."""
        if len({self.group_version.version, *(v.name for v in self.versions)}) != len(self.versions) + 1:
            raise ValueError(f"{self.kind} has two versions of the same name")
        if self.rest is not None and self.versions:
            raise ValueError(f"{self.kind} is computed, and can have one version only")

    @property
    def group_version(self) -> GroupVersion:
        """The parsed `api_version`."""
        return GroupVersion.parse(self.api_version)

    @property
    def resource(self) -> str:
        """The name of the resource in paths: `plural`, or the kind in lower case with an "s"."""
        return self.plural or f"{self.kind.lower()}s"

    @property
    def converter(self) -> Converter:
        """A converter between the versions."""
        group, version = self.group_version
        return Converter(GroupKind(group, self.kind), version, self.node, self.versions)

    @property
    def nodes(self) -> Mapping[str, SchemaNode]:
        """The compiled schema of each version by its name, in order of preference: stable versions before others."""
        nodes = {self.group_version.version: self.node, **{v.name: v.node for v in self.versions}}
        return {name: nodes[name] for name in sorted(nodes, key=priority_key)}

    @property
    def has_status(self) -> bool:
        """Whether there is a status subresource: the schema has a property `status`, and objects are stored."""
        return self.rest is None and "status" in self.structure["properties"]

    def definition(self) -> ResourceDefinition:
        """Return a new definition of the resource for the generic server, and bind the strategy to this kind."""
        group, version = self.group_version
        nodes, converter = self.nodes, self.converter
        self.strategy.bind(self)
        return ResourceDefinition(
            group=group,
            resource=self.resource,
            kind=self.kind,
            singular=self.kind.lower(),
            namespaced=self.namespaced,
            versions=tuple(nodes),
            storage_version=version,
            storage_prefix=f"{group}/{self.resource}",
            verbs=self._verbs(),
            schema=nodes.__getitem__,
            strategy=self.strategy,
            list_kind=f"{self.kind}List",
            short_names=self.short_names,
            categories=self.categories,
            subresources=self._subresources(),
            table=self._table(converter),
            rest=self.rest,
            convert=converter.convert if self.versions else None,
            from_former=converter.from_former if self.versions else None,
            deprecated={v.name: v.deprecated for v in self.versions if v.deprecated},
            custom=True,
        )

    def openapi(self) -> Iterator[tuple[GroupVersion, CustomKind]]:
        """Yield each version with the description of the kind from which its OpenAPI documents are generated."""
        yield self.group_version, self._described(self.structure, self.has_status)
        for version in self.versions:
            group_version = GroupVersion(self.group_version.group, version.name)
            yield group_version, self._described(version.structure, version.has_status)

    def _described(self, structure: Mapping[str, Any], status: bool) -> CustomKind:
        return CustomKind(self.kind, f"{self.kind}List", self.resource, self.namespaced, structure, status=status)

    def _verbs(self) -> Sequence[str]:
        if self.rest is None:
            return _STORED
        return tuple(verb for verb, base in _COMPUTED.items() if getattr(type(self.rest), verb) is not base)

    def _subresources(self) -> Sequence[Subresource]:
        if not self.has_status:
            return ()
        status = _KindStatusStrategy(self.strategy)
        versions = (self.group_version.version, *(v.name for v in self.versions if v.has_status))
        return (Subresource("status", ("get", "patch", "update"), strategy=status, versions=versions),)

    def _table(self, converter: Converter) -> TableConvertor:
        columns = [Column(c.name, c.type, priority=c.priority, description=c.description) for c in self.columns]
        stored = self.group_version.version
        row = self._row if not self.versions else lambda obj: self._row(converter.convert(obj, stored))
        return TableConvertor((Column("Name", format="name"), *columns, Column("Age")), row, lasting=False)

    def _row(self, obj: Object) -> list[Any]:
        metadata = obj["metadata"]
        return [metadata["name"], *(c.value(obj) for c in self.columns), since(metadata.get("creationTimestamp"))]
