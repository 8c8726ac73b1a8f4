"""Strategies of admission policies (validating and mutating) and their bindings.

A user who writes a policy or a binding must have read access to the parameters that it refers to; members of
system:masters are exempt.
Upstream: pkg/registry/admissionregistration/*/{strategy,authz}.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tetrapod.core.admissionregistration.match_rules import reserved_name
from tetrapod.core.kind_strategy import KindStrategy, Validate
from tetrapod.generic.admission.manifests.configuration import GATE
from tetrapod.generic.authorization.interface import Attributes, Authorizer, Decision
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.rest_mapper import find_resource
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.create import creation_errors
from tetrapod.generic.registry.strategy import MetadataRules, Revalidation
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import GroupKind, GroupVersion, Object
from tetrapod.machinery.status import invalid
from tetrapod.machinery.user import SYSTEM_MASTERS, UserInfo

GROUP: Final = "admissionregistration.k8s.io"


@dataclass(kw_only=True, eq=False, repr=False)
class StaticNames(KindStrategy):
    """The base strategy of kinds whose objects can also come from manifest files (manifests.py).

    A new object whose name is reserved for manifests is rejected, or only causes a warning if the feature gate of
    manifests is off. An update of an object with such a name causes a warning.

    Attributes:
        declared_validator: validates on create and update what upstream's schema declares; its errors come last.
    """

    metadata_rules: MetadataRules = "plain"
    revalidates_generate_name: Revalidation = "after finalizers"
    declared_validator: Validate | None = None

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        reserved = reserved_name(obj) if feature_gates.enabled(GATE) else []
        return [*super().validate(ctx, obj), *reserved, *self._declared_errors(obj)]

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return [*super().validate_update(ctx, new, old), *self._declared_errors(new)]

    def _declared_errors(self, obj: Object) -> list[FieldError]:
        return self.declared_validator(obj) if self.declared_validator else []

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return [] if feature_gates.enabled(GATE) else _reserved_name_warnings(obj)

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> list[str]:
        return _reserved_name_warnings(new)


def _reserved_name_warnings(obj: Object) -> list[str]:
    return [f"metadata.name: {error.detail}" for error in reserved_name(obj)]


class ParamAccess:
    """Lookups and authorization checks for the parameters of policies and bindings.

    Args:
        authorizer: decides about access; None to check no user.
    """

    def __init__(self, authorizer: Authorizer | None, client: Client, storages: StorageFactory) -> None:
        self._authorizer = authorizer
        self._client = client
        self._storages = storages

    def must_check(self, user: UserInfo) -> bool:
        """Return whether the user's access to parameters must be checked: not for members of system:masters.

        Without an authorizer, no user is checked.
        """
        return self._authorizer is not None and SYSTEM_MASTERS not in user.groups

    async def policy(self, resource: str, kind: str, name: str) -> Object | None:
        """Return the stored policy with this name, or None if it does not exist.

        Args:
            resource: "validatingadmissionpolicies" or "mutatingadmissionpolicies".
            kind: the kind of that resource.
        """
        config = StorageConfig(prefix=resource, api_version=f"{GROUP}/v1", kind=kind, namespaced=False)
        entry = await self._storages.resource(config).get(name)
        return entry.peek() if entry is not None else None

    async def resource(self, kind: Object) -> tuple[GroupVersion, str]:
        """Return the group-version and the resource of a paramKind.

        Args:
            kind: the paramKind: an object with apiVersion and kind.

        Returns:
            "*" for the resource if no server serves the kind; "*" for all three if apiVersion is invalid.
        """
        try:
            gv = GroupVersion.parse(kind.get("apiVersion") or "")
        except ValueError:
            return GroupVersion("*", "*"), "*"
        resource = await find_resource(self._client, gv.with_kind(kind.get("kind") or ""))
        return gv, resource.resource.resource if resource is not None else "*"

    async def may(self, user: UserInfo, verb: str, target: tuple[GroupVersion, str], namespace: str, name: str) -> bool:
        """Return whether the authorizer allows the user this verb on the parameters.

        Call it only if `must_check` returned True.

        Args:
            target: the group-version and the resource of the parameters, as `resource` returns them; "*" for any.
            namespace: the namespace of the parameters, or "" for cluster-scoped ones.
            name: the name of the parameters, or "" for `list`.
        """
        assert self._authorizer is not None
        (group, version), resource = target
        attributes = Attributes(user, verb, namespace, group, version, resource, name=name, resource_request=True)
        return (await self._authorizer.authorize(attributes)).decision is Decision.ALLOW


class PolicyStrategy(StaticNames):
    """The strategy of policies: a user who sets or changes paramKind must have `get` on all objects of that kind.

    Args:
        access: checks whether the user has this permission.
        kind: the kind of the policies, for errors.
    """

    def __init__(self, access: ParamAccess, kind: str, **options: Any) -> None:
        super().__init__(generation=("spec",), allow_unconditional_update=False, **options)
        self._access, self._kind = access, kind

    async def begin_create(self, ctx: Context, obj: Object) -> None:
        if (
            (obj.get("spec") or {}).get("paramKind") is not None
            and self._access.must_check(ctx.user)
            and not creation_errors(self, ctx, obj, namespaced=False)
        ):
            await self._authorize(ctx.user, obj)

    async def begin_update(self, ctx: Context, new: Object, old: Object) -> None:
        kind = (new.get("spec") or {}).get("paramKind")
        if kind is None or kind == (old.get("spec") or {}).get("paramKind"):
            return
        if self._access.must_check(ctx.user) and not self.validate_update(ctx, new, old):
            await self._authorize(ctx.user, new)

    async def _authorize(self, user: UserInfo, obj: Object) -> None:
        kind = obj["spec"]["paramKind"]
        if not await self._access.may(user, "get", await self._access.resource(kind), "*", "*"):
            param_kind = f"(kind={kind.get('kind')}, apiVersion={kind.get('apiVersion')})"
            detail = (
                f'user {_shown(user)} must have "get" permission on all objects of the referenced paramKind '
                f"{param_kind}"
            )
            raise _forbidden(self._kind, obj, "spec.paramKind", detail)


class BindingStrategy(StaticNames):
    """The strategy of bindings: a user who writes one with a paramRef must have access to the referenced parameters.

    Args:
        access: looks up the bound policy, and checks whether the user has access.
        policies: the resource of the bound policies.
        policy_kind: the kind of the bound policies.
    """

    def __init__(self, access: ParamAccess, policies: str, policy_kind: str, **options: Any) -> None:
        super().__init__(generation=("spec",), allow_unconditional_update=False, **options)
        self._access, self._policies, self._kind = access, policies, policy_kind

    async def begin_create(self, ctx: Context, obj: Object) -> None:
        if (
            (obj.get("spec") or {}).get("paramRef") is not None
            and self._access.must_check(ctx.user)
            and not creation_errors(self, ctx, obj, namespaced=False)
        ):
            await self._authorize(ctx.user, obj)

    async def begin_update(self, ctx: Context, new: Object, old: Object) -> None:
        """Check access at every update with a paramRef, even if it has not changed.

        Upstream compares the pointers of the old and the new paramRef, which always differ, not their values.

        Raises:
            StatusError: 422, the user has no access to the parameters.
        """
        if (
            (new.get("spec") or {}).get("paramRef") is not None
            and self._access.must_check(ctx.user)
            and not self.validate_update(ctx, new, old)
        ):
            await self._authorize(ctx.user, new)

    async def _authorize(self, user: UserInfo, obj: Object) -> None:
        spec = obj["spec"]
        param_ref, name = spec["paramRef"], spec.get("policyName") or ""
        verb = "get" if param_ref.get("name") else "list"
        policy = await self._access.policy(self._policies, self._kind, name)
        kind = (policy.get("spec") or {}).get("paramKind") if policy is not None else None
        params = await self._access.resource(kind) if kind is not None else (GroupVersion("*", "*"), "*")
        if await self._access.may(user, verb, params, param_ref.get("namespace") or "", param_ref.get("name") or ""):
            return
        missing = f'does not have "{verb}" permission'
        if policy is None:
            detail = (
                f"unable to get policy {name} to determine minimum required permissions and user {_shown(user)} "
                f"{missing}"
            )
            detail += " for all groups, versions and resources"
        elif kind is not None and params[1] == "*":
            param_kind = f"&ParamKind{{APIVersion:{kind.get('apiVersion')},Kind:{kind.get('kind')},}}"
            detail = (
                f"unable to resolve paramKind {param_kind} to determine minimum required permissions and user "
                f"{_shown(user)} {missing}"
            )
            detail += " for all groups, versions and resources"
        else:
            detail = f"user {_shown(user)} {missing} on the object referenced by paramRef"
        raise _forbidden(f"{self._kind}Binding", obj, "spec.paramRef", detail)


def _shown(user: UserInfo) -> str:
    """Format the user as Go's `%v` prints a pointer to its struct."""
    extra = " ".join(f"{key}:[{' '.join(values)}]" for key, values in sorted(user.extra.items()))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"


def _forbidden(kind: str, obj: Object, path: str, detail: str) -> Exception:
    return invalid(GroupKind(GROUP, kind), obj["metadata"].get("name") or "", [field.forbidden(path, detail)])
