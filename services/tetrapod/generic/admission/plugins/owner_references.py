"""OwnerReferencesPermissionEnforcement: restricts who may change owner references and block deletion of owners.

It is off by default.
Upstream: plugin/pkg/admission/gc/gc_admission.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.authorization.interface import Attributes as Asked
from tetrapod.generic.authorization.interface import Authorizer, Decision
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.rest_mapper import Mapping, find_resource
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupVersion, Object

_NO_DELETE: Final = "cannot set an ownerRef on a resource you can't delete"
_NO_FINALIZERS: Final = (
    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
)


class OwnerReferencesPermissionEnforcement(Plugin):
    """The plugin that requires permissions for changing an object's owners and for blocking their deletion.

    Changing an existing object's owners requires permission to delete the object. Setting blockOwnerDeletion requires
    permission to update the owner's finalizers.

    Args:
        authorizer: decides whether the user has these permissions.
        client: finds the resource of an owner's kind by discovery.
    """

    name = "OwnerReferencesPermissionEnforcement"
    operations = frozenset({"CREATE", "UPDATE"})

    def __init__(self, authorizer: Authorizer, client: Client) -> None:
        self._authorizer = authorizer
        self._client = client

    def handles(self, attributes: Attributes) -> bool:
        group, _, resource = attributes.resource
        return (group, resource, attributes.subresource) != ("", "pods", "status")

    async def validate(self, attributes: Attributes) -> None:
        old_owners, new_owners = _owners(attributes.old_object), _owners(attributes.object)
        if old_owners == new_owners:
            return
        if attributes.operation != "CREATE":
            await self._require_deletion(attributes)
        blocking = _newly_blocking(old_owners, new_owners)
        if not blocking or (await self._may_finalize_anything(attributes)):
            return
        for owner in blocking:
            await self._require_finalizers(attributes, owner)

    async def _require_deletion(self, attributes: Attributes) -> None:
        gvr, namespace = attributes.resource, attributes.namespace
        check = Asked(
            attributes.user, "delete", namespace, *gvr, attributes.subresource, attributes.name, resource_request=True
        )
        await self._require(attributes, check, _NO_DELETE)

    async def _require(self, attributes: Attributes, check: Asked, prefix: str) -> None:
        answer = await self._authorizer.authorize(check)
        if answer.decision is not Decision.ALLOW:
            raise forbidden(attributes, f"{prefix}: {answer.reason}, {answer.error or '<nil>'}")

    async def _may_finalize_anything(self, attributes: Attributes) -> bool:
        """Return whether the user may update the finalizers of all objects of all resources.

        This permission is checked first. The check for a single owner needs discovery, to find the resource of the
        owner's kind, and discovery may be unavailable.
        """
        check = Asked(attributes.user, "update", "", "*", "*", "*", "finalizers", "*", resource_request=True)
        return (await self._authorizer.authorize(check)).decision is Decision.ALLOW

    async def _require_finalizers(self, attributes: Attributes, owner: Object) -> None:
        mapping = await self._mapping(attributes, owner)
        namespace, name = attributes.namespace if mapping.namespaced else "", owner.get("name") or ""
        check = Asked(
            attributes.user, "update", namespace, *mapping.resource, "finalizers", name, resource_request=True
        )
        await self._require(attributes, check, _NO_FINALIZERS)

    async def _mapping(self, attributes: Attributes, owner: Object) -> Mapping:
        api_version, kind = owner.get("apiVersion") or "", owner.get("kind") or ""
        mapping = None
        try:
            reason = f"no matches for kind {go_quote(kind)} in version {go_quote(api_version)}"
            mapping = await find_resource(self._client, GroupVersion.parse(api_version).with_kind(kind))
        except ValueError as error:
            reason = str(error)
        if mapping is None:
            owner_type = f"APIVersion {api_version} Kind {kind}"
            raise forbidden(
                attributes,
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping "
                f"for {owner_type}: {reason}",
            )
        return mapping


def _owners(obj: Object | None) -> Sequence[Object]:
    return ((obj or {}).get("metadata") or {}).get("ownerReferences") or ()


def _newly_blocking(old_owners: Sequence[Object], new_owners: Sequence[Object]) -> list[Object]:
    blocked = {owner.get("uid") or "" for owner in old_owners if owner.get("blockOwnerDeletion")}
    return [
        owner for owner in new_owners if owner.get("blockOwnerDeletion") and (owner.get("uid") or "") not in blocked
    ]
