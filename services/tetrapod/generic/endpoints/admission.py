"""`RequestAdmission`: calls admission for the verb handlers.

It builds the attributes of an operation, and provides callbacks for the registry. Mutating plugins get the object in
the storage version, before the registry prepares it; validating ones get the object that will be stored.
Upstream: admission.NewAttributesRecord, rest.AdmissionToValidateObjectFunc and related functions
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.generic.admission.interface import Attributes, forbidden
from tetrapod.generic.authorization.interface import Attributes as AuthorizationAttributes
from tetrapod.generic.authorization.interface import Decision
from tetrapod.generic.authorization.message import forbidden_status
from tetrapod.generic.endpoints.scope import Scope, request_info
from tetrapod.generic.http.request import Request
from tetrapod.generic.registry.context import Context
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.machinery.fieldmanager import entries
from tetrapod.machinery.gvk import Object

_UNSAFE_DELETION: Final = "unsafe-delete-ignore-read-errors"
_UNREADABLE: Final = (
    ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating "
    "admission controller; please fix your requests"
)


class RequestAdmission:
    """Calls the admission plugins for one request.

    Args:
        scope: the endpoint.
        request: the HTTP request.
        context: its registry context.
        name: the name in the path, or that of the new object; "" if the name is still to be generated.
    """

    __slots__ = ("_context", "_name", "_request", "_scope")

    def __init__(self, scope: Scope, request: Request, context: Context, name: str) -> None:
        self._scope, self._request, self._context, self._name = scope, request, context, name

    def attributes(self, operation: str, obj: Object | None, old: Object | None, options: Object) -> Attributes:
        """Return the attributes of an operation, as plugins and webhooks see it.

        Args:
            operation: "CREATE", "UPDATE", "DELETE" or "CONNECT".
            obj: the new object, or for CONNECT the options object of the connection; None for a deletion.
            old: the stored object; None for CREATE and CONNECT.
            options: the options object of the request (CreateOptions, …); {} for CONNECT.
        """
        scope, context = self._scope, self._context
        namespace = context.namespace
        if not namespace and scope.definition.resource == "namespaces" and not scope.definition.group:
            namespace = self._name
        return Attributes(
            operation=operation,
            kind=scope.kind,
            resource=scope.gvr,
            subresource=scope.subresource,
            namespace=namespace,
            name=self._name,
            object=obj,
            old_object=old,
            options=options,
            dry_run=context.dry_run,
            user=context.user,
            warnings=self._request.warnings,
            annotations=self._request.annotations,
            request=self._request,
            versions=scope.versions,
            large=context.large,
        )

    async def mutate(self, operation: str, obj: Object, old: Object | None, options: Object) -> Object:
        """Run the mutating plugins and return the resulting object. They may modify `obj`.

        If a plugin makes managedFields invalid, they are restored, with a warning to the client.

        Args:
            operation: "CREATE", "UPDATE" or "CONNECT".
            obj: the new object, or for CONNECT the options object of the connection.
            old: the stored object; None for CREATE and CONNECT.
            options: the options object of the request (CreateOptions, …); {} for CONNECT.

        Raises:
            StatusError: a plugin rejects the request.
        """
        chain = self._scope.admission
        if not chain.handles(operation):
            return obj
        attributes = self.attributes(operation, obj, old, options)
        managed_fields = (obj.get("metadata") or {}).get("managedFields")
        await chain.admit(attributes)
        admitted = attributes.object if attributes.object is not None else obj
        if self._scope.field_manager is not None:
            self._keep_managed_fields(admitted, managed_fields)
        return admitted

    def _keep_managed_fields(self, obj: Object, old_entries: Any) -> None:
        """Restore `old_entries` as the managedFields of `obj`, in place, if a plugin has made them invalid.

        The client gets a warning.
        Upstream: managedFieldsValidatingAdmissionController.
        """
        new_entries = (obj.get("metadata") or {}).get("managedFields")
        if new_entries is old_entries or new_entries == old_entries:
            return
        if not new_entries:
            obj["metadata"].pop("managedFields", None)
            return
        try:
            entries.decode(new_entries)
        except ValueError as error:
            obj["metadata"]["managedFields"] = old_entries
            if not old_entries:
                obj["metadata"].pop("managedFields")
            self._request.warnings.append(f"{_UNREADABLE}: {error}")

    async def validate(self, operation: str, obj: Object | None, old: Object | None, options: Object) -> None:
        """Run the validating plugins.

        Args:
            operation: "CREATE", "UPDATE", "DELETE" or "CONNECT".
            obj: the new object, or for CONNECT the options object of the connection; None for a deletion.
            old: the stored object; None for CREATE and CONNECT.
            options: the options object of the request (CreateOptions, …); {} for CONNECT.

        Raises:
            StatusError: a plugin rejects the request.
        """
        chain = self._scope.admission
        if not chain.handles(operation):
            return
        attributes = self.attributes(operation, obj, old, options)
        if not attributes.name and obj is not None:  # the registry has generated the name since
            attributes.name = obj["metadata"].get("name") or ""
        await chain.validate(attributes)

    async def validate_stored(self, operation: str, obj: Object, old: Object | None, options: Object) -> None:
        """Run the validating plugins for an object that is going to be stored, and leave in it what is stored.

        They see its empty lists and maps, but no empty values of fields with omitempty.

        Args:
            operation: "CREATE" or "UPDATE".
            obj: the new object, which is changed in place.
            old: the stored object; None for CREATE.
            options: the options object of the request.

        Raises:
            StatusError: a plugin rejects the request.
        """
        large = self._context.large
        await offloaded(large, self._scope.omit_empty, obj)
        await self.validate(operation, obj, old, options)
        await offloaded(large, self._scope.forget_empty, obj)

    async def delete(self, old: Object, options: Object) -> None:
        """Run mutating and validating plugins for the deletion of `old`. Raises StatusError if one rejects it."""
        chain = self._scope.admission
        if not chain.handles("DELETE"):
            return
        attributes = self.attributes("DELETE", None, old, options)
        await chain.admit(attributes)
        await chain.validate(attributes)

    async def may_create(self) -> None:
        """Check that the user may create the object, for an update that creates it.

        Raises:
            StatusError: 403, the user may not.
        """
        scope = self._scope
        if scope.authorizer is None:
            return
        attributes = self._authorization("create")._replace(subresource=scope.subresource, path=self._request.path)
        authorization = await scope.authorizer.authorize(attributes)
        if authorization.decision is not Decision.ALLOW:
            raise forbidden_status(attributes, authorization.reason)

    async def may_delete_unreadable(self) -> None:
        """Check that the user may delete an object that cannot be read.

        Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/delete.go, authorizeUnsafeDelete

        Raises:
            StatusError: 403, the user may not.
        """
        if self._scope.authorizer is None:
            return
        authorization = await self._scope.authorizer.authorize(self._authorization(_UNSAFE_DELETION))
        if authorization.error:
            text = f'error while checking permission for "{_UNSAFE_DELETION}", {authorization.error}'
        elif authorization.decision is not Decision.ALLOW:
            text = f'not permitted to do "{_UNSAFE_DELETION}", reason: {authorization.reason}'
        else:
            return
        raise forbidden(self.attributes("DELETE", None, None, {}), text)

    def _authorization(self, verb: str) -> AuthorizationAttributes:
        """Return the attributes of an authorization check: may the user use `verb` on the object of the request?

        They have no subresource; the caller sets that of the request where it counts.
        """
        scope = self._scope
        return AuthorizationAttributes(
            user=self._request.user,
            verb=verb,
            namespace=request_info(self._request).namespace,
            group=scope.gvr.group,
            version=scope.gvr.version,
            resource=scope.gvr.resource,
            name=self._name,
            resource_request=True,
        )
