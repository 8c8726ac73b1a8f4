"""`Scope`: the resource, version and subresource of an endpoint, with everything that the verb handlers need.

One is created for each resource or subresource in each version, when the resource is installed.
Upstream: handlers.RequestScope
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tetrapod.generic.admission.interface import AdmissionChain, Versions
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.endpoints.decoding import Decoder
from tetrapod.generic.endpoints.field_management import EndpointFieldManager
from tetrapod.generic.endpoints.representation import Representation
from tetrapod.generic.http.negotiation.accept import DEFAULT_OFFER, Offer
from tetrapod.generic.http.request import Request
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition, Subresource
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.store import Store
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.gvk import GroupVersionKind, GroupVersionResource, Object
from tetrapod.machinery.requestinfo import RequestInfo
from tetrapod.machinery.schema import empty_values


@dataclass(slots=True)
class Scope:
    """The data of one endpoint: a resource or subresource in one version.

    Attributes:
        definition: the resource.
        version: the version in requests.
        installed_store: the store of the resource; None for one without storage.
        admission: the admission plugins.
        kind: the kind of bodies and responses.
        representation: encodes the responses.
        decoder: decodes and checks the bodies.
        field_manager: updates managedFields; None if the kind has none.
        versions: converts objects between the versions of the resource.
        subresource: the subresource; "" for the resource itself.
        strategy: the strategy of the subresource; None for the resource itself or a subresource with a `rest`.
        rest: the handler of a resource without storage, or of a subresource with its own handler; else None.
        authorizer: authorizes updates that create an object; None does not check them.
        offer: what can be negotiated besides JSON and YAML.
        declared: the declaration of the subresource; None for the resource itself.
        gvr: group, version and resource.
    """

    definition: ResourceDefinition
    version: str
    installed_store: Store | None
    admission: AdmissionChain
    kind: GroupVersionKind
    representation: Representation
    decoder: Decoder
    field_manager: EndpointFieldManager | None
    versions: Versions
    subresource: str = ""
    strategy: Strategy | None = None
    rest: Rest | None = None
    authorizer: Authorizer | None = None
    offer: Offer = DEFAULT_OFFER
    declared: Subresource | None = None
    gvr: GroupVersionResource = field(init=False)

    def __post_init__(self) -> None:
        self.gvr = GroupVersionResource(self.definition.group, self.version, self.definition.resource)

    @property
    def store(self) -> Store:
        """The store of the resource. It must not be read for a resource without storage: that is an AssertionError."""
        assert self.installed_store is not None  # handlers of a Rest do not use the store
        return self.installed_store

    def omit_empty(self, obj: Object) -> None:
        """Remove the empty values of fields with omitempty from `obj`, in place; do nothing for custom resources.

        Call this after managed fields were updated and the object was validated, because both need the empty values.
        """
        definition = self.definition
        if not definition.custom:
            empty_values.omit(definition.schema(definition.storage_version), obj)

    def forget_empty(self, obj: Object) -> None:
        """Set the empty lists and maps that stored objects lack to null, in place; do nothing for custom resources.

        Call this after validating admission, which sees them.
        """
        definition = self.definition
        if not definition.custom:
            empty_values.forget(definition.schema(definition.storage_version), obj)

    def context(self, request: Request, dry_run: bool = False) -> Context:
        """Return the registry context of a request.

        Warnings and audit annotations that are added to the context reach the request.

        Args:
            request: the request.
            dry_run: whether nothing is to be stored.

        Raises:
            ValueError: the request has no request info, because it has not passed the filter that sets it.
        """
        info = request_info(request)
        namespace = info.namespace if self.definition.namespaced else ""
        return Context(
            request.user,
            namespace,
            self.version,
            self.subresource,
            dry_run,
            request.warnings,
            request.annotations,
            verb=info.verb,
        )


def request_info(request: Request) -> RequestInfo:
    """Return the request info.

    Raises:
        ValueError: the request has none, because it has not passed the filter that sets it.
    """
    info = request.info
    if info is None:
        raise ValueError("an endpoint needs the request info")
    return info


def request_name(request: Request) -> str:
    """Return the name in the path, "" for a collection. A name in a field selector is ignored.

    Raises:
        ValueError: the request has no request info, because it has not passed the filter that sets it.
    """
    parts = request_info(request).parts
    return parts[1] if len(parts) > 1 else ""
