"""`Scope`: everything that the verb handlers know of the resource, version and subresource that they answer for.

One is made per path when a resource is installed. Upstream: handlers.RequestScope.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tetrapod.generic.admission.interface import AdmissionChain, Versions
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.endpoints.decoding import Decoder
from tetrapod.generic.endpoints.ownership import Ownership
from tetrapod.generic.endpoints.representation import Representation
from tetrapod.generic.negotiation.accept import DEFAULT_OFFER, Offer
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition, Subresource
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.store import Store
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.request import Request
from tetrapod.machinery.gvk import GroupVersionKind, GroupVersionResource, Object
from tetrapod.machinery.requestinfo import RequestInfo
from tetrapod.machinery.schema import emptied


@dataclass(slots=True)
class Scope:
    """`kind` is what bodies and answers are; `installed_store` is None for a resource that answers itself."""

    definition: ResourceDefinition
    version: str
    installed_store: Store | None
    admission: AdmissionChain
    kind: GroupVersionKind
    representation: Representation
    decoder: Decoder
    ownership: Ownership | None
    versions: Versions
    subresource: str = ""
    strategy: Strategy | None = None  # of a subresource
    rest: Rest | None = None
    authorizer: Authorizer | None = None
    offer: Offer = DEFAULT_OFFER
    declared: Subresource | None = None
    gvr: GroupVersionResource = field(init=False)

    def __post_init__(self) -> None:
        self.gvr = GroupVersionResource(self.definition.group, self.version, self.definition.resource)

    @property
    def store(self) -> Store:
        """Where the objects are."""
        assert self.installed_store is not None  # whoever has a Rest asks that
        return self.installed_store

    def forget_empty(self, obj: Object) -> None:
        """Of an object about to be stored, whose owners are known: what storage does not tell from absence."""
        definition = self.definition
        if not definition.custom:
            emptied.forget(definition.schema(definition.storage_version), obj)

    def omit_empty(self, obj: Object) -> None:
        """Of a valid object about to be stored: empty lists that validation alone has told from absent ones."""
        definition = self.definition
        if not definition.custom:
            emptied.omit(definition.schema(definition.storage_version), obj)

    def context(self, request: Request, dry_run: bool = False) -> Context:
        info = request_info(request)
        namespace = info.namespace if self.definition.namespaced else ""
        return Context(
            request.user, namespace, self.version, self.subresource, dry_run, request.warnings, request.annotations, verb=info.verb
        )


def request_info(request: Request) -> RequestInfo:
    info = request.info
    if info is None:
        raise ValueError("an endpoint needs the request info")
    return info


def request_name(request: Request) -> str:
    """The name in the path ("" for a collection); a field selector's does not count."""
    parts = request_info(request).parts
    return parts[1] if len(parts) > 1 else ""
