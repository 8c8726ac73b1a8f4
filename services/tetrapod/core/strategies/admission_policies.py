"""Policies of admission and their bindings: who writes one may read the parameters that it uses.

Upstream: pkg/registry/admissionregistration/*/{strategy,authz}.go. system:masters is not asked.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.strategies.simple import KindStrategy
from tetrapod.core.validation.admission_rules import reserved_name
from tetrapod.generic.authorization.interface import Attributes, Authorizer, Decision
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.kinds import find_resource
from tetrapod.generic.registry.context import Context
from tetrapod.generic.storage.interface import StorageConfig, StorageFactory
from tetrapod.generic.user import SYSTEM_MASTERS, UserInfo
from tetrapod.machinery import field
from tetrapod.machinery.gvk import GroupKind, GroupVersion, Object
from tetrapod.machinery.status import invalid

GROUP: Final = "admissionregistration.k8s.io"


class StaticNames(KindStrategy):
    """What has a name that manifests have is warned of; validation refuses to make one."""

    metadata_rules = "plain"
    names_again = True

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> list[str]:
        return [f"metadata.name: {error.detail}" for error in reserved_name(new)]


class ParamAccess:
    """What is asked about parameters: what they are, and who may see them."""

    def __init__(self, authorizer: Authorizer | None, client: Client, storages: StorageFactory) -> None:
        self._authorizer = authorizer
        self._client = client
        self._storages = storages

    def asks_of(self, user: UserInfo) -> bool:
        return self._authorizer is not None and SYSTEM_MASTERS not in user.groups

    async def policy(self, resource: str, kind: str, name: str) -> Object | None:
        config = StorageConfig(prefix=resource, api_version=f"{GROUP}/v1", kind=kind, namespaced=False)
        entry = await self._storages.resource(config).get(name)
        return entry.peek() if entry is not None else None

    async def resource(self, kind: Object) -> tuple[GroupVersion, str]:
        """Of a paramKind; "*" is all that nothing more is known of."""
        try:
            gv = GroupVersion.parse(kind.get("apiVersion") or "")
        except ValueError:
            return GroupVersion("*", "*"), "*"
        found = await find_resource(self._client, gv.with_kind(kind.get("kind") or ""))
        return gv, found.resource.resource if found is not None else "*"

    async def may(self, user: UserInfo, verb: str, where: tuple[GroupVersion, str], namespace: str, name: str) -> bool:
        assert self._authorizer is not None
        (group, version), resource = where
        question = Attributes(user, verb, namespace, group, version, resource, name=name, resource_request=True)
        return (await self._authorizer.authorize(question)).decision is Decision.ALLOW


class PolicyStrategy(StaticNames):
    def __init__(self, access: ParamAccess, kind: str, **options: Any) -> None:
        super().__init__(generation=["spec"], unconditional_update=False, **options)
        self._access, self._kind = access, kind

    async def begin_create(self, ctx: Context, obj: Object) -> None:
        if (obj.get("spec") or {}).get("paramKind") is not None and self._access.asks_of(ctx.user) and not self.validate(ctx, obj):
            await self._authorize(ctx.user, obj)

    async def begin_update(self, ctx: Context, new: Object, old: Object) -> None:
        kind = (new.get("spec") or {}).get("paramKind")
        if kind is None or kind == (old.get("spec") or {}).get("paramKind"):
            return
        if self._access.asks_of(ctx.user) and not self.validate_update(ctx, new, old):
            await self._authorize(ctx.user, new)

    async def _authorize(self, user: UserInfo, obj: Object) -> None:
        kind = obj["spec"]["paramKind"]
        if not await self._access.may(user, "get", await self._access.resource(kind), "*", "*"):
            about = f"(kind={kind.get('kind')}, apiVersion={kind.get('apiVersion')})"
            why = f'user {_shown(user)} must have "get" permission on all objects of the referenced paramKind {about}'
            raise _forbidden(self._kind, obj, "spec.paramKind", why)


class BindingStrategy(StaticNames):
    """`policies` is the resource of the policies that are bound, `policy_kind` their kind."""

    def __init__(self, access: ParamAccess, policies: str, policy_kind: str, **options: Any) -> None:
        super().__init__(generation=["spec"], unconditional_update=False, **options)
        self._access, self._policies, self._kind = access, policies, policy_kind

    async def begin_create(self, ctx: Context, obj: Object) -> None:
        if (obj.get("spec") or {}).get("paramRef") is not None and self._access.asks_of(ctx.user) and not self.validate(ctx, obj):
            await self._authorize(ctx.user, obj)

    async def begin_update(self, ctx: Context, new: Object, old: Object) -> None:
        """Asked at every update: upstream compares references, not what they say."""
        if (
            (new.get("spec") or {}).get("paramRef") is not None
            and self._access.asks_of(ctx.user)
            and not self.validate_update(ctx, new, old)
        ):
            await self._authorize(ctx.user, new)

    async def _authorize(self, user: UserInfo, obj: Object) -> None:
        spec = obj["spec"]
        ref, name = spec["paramRef"], spec.get("policyName") or ""
        verb = "get" if ref.get("name") else "list"
        policy = await self._access.policy(self._policies, self._kind, name)
        kind = (policy.get("spec") or {}).get("paramKind") if policy is not None else None
        where = await self._access.resource(kind) if kind is not None else (GroupVersion("*", "*"), "*")
        if await self._access.may(user, verb, where, ref.get("namespace") or "", ref.get("name") or ""):
            return
        lacks = f'does not have "{verb}" permission'
        if policy is None:
            why = f"unable to get policy {name} to determine minimum required permissions and user {_shown(user)} {lacks}"
            why += " for all groups, versions and resources"
        elif kind is not None and where[1] == "*":
            shown = f"&ParamKind{{APIVersion:{kind.get('apiVersion')},Kind:{kind.get('kind')},}}"
            why = f"unable to resolve paramKind {shown} to determine minimum required permissions and user {_shown(user)} {lacks}"
            why += " for all groups, versions and resources"
        else:
            why = f"user {_shown(user)} {lacks} on the object referenced by paramRef"
        raise _forbidden(f"{self._kind}Binding", obj, "spec.paramRef", why)


def _shown(user: UserInfo) -> str:
    """As Go prints the struct."""
    extra = " ".join(f"{key}:[{' '.join(values)}]" for key, values in sorted(user.extra.items()))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"


def _forbidden(kind: str, obj: Object, path: str, why: str) -> Exception:
    return invalid(GroupKind(GROUP, kind), obj["metadata"].get("name") or "", [field.forbidden(path, why)])
