"""`Scopes`: creates the `Scope` of a resource in one version and of its subresources."""

from __future__ import annotations

from collections.abc import Callable

from tetrapod.generic.admission.interface import AdmissionChain
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.endpoints import field_management
from tetrapod.generic.endpoints.admission_versions import AdmissionVersions
from tetrapod.generic.endpoints.decoding import Decoder
from tetrapod.generic.endpoints.field_management import EndpointFieldManager
from tetrapod.generic.endpoints.representation import Representation
from tetrapod.generic.endpoints.scope import Scope
from tetrapod.generic.http.negotiation.accept import Offer
from tetrapod.generic.registry.definition import ResourceDefinition, RestOfVersions, Subresource
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.store import Store
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery import types
from tetrapod.machinery.gvk import GroupVersionKind, Object
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.types.connect_options import connect_schema


class Scopes:
    """Creates the scopes of one resource in one version. They share the encoder of the resource.

    Args:
        definition: the resource.
        version: the version of the requests.
        store: the store of the resource; None for one without storage.
        admission: the admission plugins.
        authorizer: authorizes updates that create an object; None does not check them.
    """

    def __init__(
        self,
        definition: ResourceDefinition,
        version: str,
        store: Store | None,
        admission: AdmissionChain,
        authorizer: Authorizer | None = None,
    ) -> None:
        self._definition, self._version, self._store = definition, version, store
        self._admission, self._authorizer = admission, authorizer
        self._representation = Representation(definition, version)

    def resource(self) -> Scope:
        """Create the scope of the resource itself."""
        definition, version = self._definition, self._version
        rest = self._bound(definition.rest)
        builtin = not definition.custom
        offer = Offer(messages=builtin, reads_messages=builtin, table=rest is None or definition.table is not None)
        decoder = self._decoder(definition.strategy)
        return Scope(
            definition=definition,
            version=version,
            installed_store=self._store,
            admission=self._admission,
            kind=definition.gvk(version),
            representation=self._representation,
            decoder=decoder,
            field_manager=field_management.of_resource(definition, version, definition.strategy, ""),
            versions=AdmissionVersions(definition, None, decoder, self._decoder_of),
            rest=rest,
            authorizer=self._authorizer,
            offer=offer,
        )

    def subresource(self, declared: Subresource) -> Scope:
        """Create the scope of the subresource that `declared` describes."""
        definition, version = self._definition, self._version
        own = declared.kind is None or declared.kind == definition.gvk(version)
        kind = definition.gvk(version) if declared.kind is None else declared.kind
        rest = self._bound(declared.rest)
        table = rest.table if rest is not None else None
        field_manager: EndpointFieldManager | None
        if own:
            decoder = self._decoder(declared.strategy or definition.strategy)
            field_manager = field_management.of_resource(
                definition, version, declared.strategy or definition.strategy, declared.name
            )
        else:
            default = declared.rest.default if declared.rest is not None else None
            also = declared.rest.also_accepts if declared.rest is not None else frozenset()
            options = connect_schema(kind.kind)
            schema: Callable[[], SchemaNode] = lambda: options or types.schema_for(kind)  # noqa: E731
            decoder = Decoder(kind, schema, default, unregistered=definition.custom, also_accepts=also)
            field_manager = (
                field_management.of_kind(kind, schema, declared.name, of_custom=definition.custom)
                if _has_schema(kind)
                else None
            )
        return Scope(
            definition=definition,
            version=version,
            installed_store=self._store,
            admission=self._admission,
            kind=kind,
            representation=self._representation if own else Representation(definition, version, table, kind),
            decoder=decoder,
            field_manager=field_manager,
            versions=AdmissionVersions(definition, declared, decoder, self._decoder_of),
            subresource=declared.name,
            strategy=declared.strategy,
            rest=rest,
            authorizer=self._authorizer,
            offer=Offer(
                messages=not definition.custom,
                reads_messages=not definition.custom or not own,
                table=table is not None or (rest is None and (declared.strategy is None or declared.strategy.tabular)),
            ),
        )

    def _bound(self, rest: Rest | None) -> Rest | None:
        return rest.bind(self._definition, self._version, self._store) if isinstance(rest, RestOfVersions) else rest

    def _decoder(self, strategy: Strategy) -> Decoder:
        return self._decoder_of(self._definition, self._version, strategy)

    def _decoder_of(self, definition: ResourceDefinition, version: str, strategy: Strategy | None = None) -> Decoder:
        strategy = strategy or definition.strategy
        default: Callable[[Object], None] | None = None
        if type(strategy).default is not Strategy.default:
            default = _defaulter(strategy, version)
        elif type(definition.strategy).default is not Strategy.default:
            default = _defaulter(definition.strategy, version)
        schema: Callable[[], SchemaNode] = lambda: definition.schema(version)  # noqa: E731
        return Decoder(
            definition.gvk(version), schema, default, custom=definition.custom, schema_in=_schema_in(definition)
        )


def _schema_in(definition: ResourceDefinition) -> Callable[[str], SchemaNode]:
    """Return a function from a version to the schema.

    For a version that the resource lacks, it returns one without fields.
    """
    return lambda version: definition.schema(version) if version in definition.versions else SchemaNode()


def _defaulter(strategy: Strategy, version: str) -> Callable[[Object], None]:
    def default(obj: Object) -> None:
        strategy.default(obj, version)

    return default


def _has_schema(kind: GroupVersionKind) -> bool:
    try:
        types.schema_for(kind)
    except KeyError:
        return False
    return True
