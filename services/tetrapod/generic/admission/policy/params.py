"""`Params`: the parameter objects of bindings, of any kind that the API serves.

They are read through the server's own API client, so that built-in kinds and custom resources work the same in every
service. An informer caches each kind; an object missing in the cache is read from the API.
Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go, CollectParams
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from tetrapod.generic.admission.plugin_dependencies import Background
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.rest_mapper import Mapping, find_resource
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.machinery.gvk import GroupVersionKind, Object
from tetrapod.machinery.labels import from_label_selector
from tetrapod.machinery.status import StatusError

_SYNC_SECONDS: Final = 1.0
_NONE_FOUND: Final = "no params found for policy binding with `Deny` parameterNotFoundAction"
_NO_NAMESPACE: Final = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
_NAMESPACE_GIVEN: Final = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"


class ConfigurationError(Exception):
    """A policy or binding cannot be applied, such as because its parameters are missing; the text is upstream's."""


class _Followed(NamedTuple):
    mapping: Mapping
    informer: Informer
    task: object


class Params:
    """The parameter objects of policies, read by one informer for each kind of parameters (paramKind).

    Args:
        client: reads the parameters.
        background: starts a coroutine that runs until the server stops.
    """

    def __init__(self, client: Client, background: Background) -> None:
        self._client = client
        self._background = background
        self._followed: dict[GroupVersionKind, _Followed] = {}

    def keep(self, kinds: Iterable[GroupVersionKind]) -> None:
        """Stop the informers of all kinds that are not in `kinds`."""
        for kind in self._followed.keys() - set(kinds):
            task = self._followed.pop(kind).task
            if isinstance(task, asyncio.Task):
                task.cancel()

    async def add_kind(self, kind: GroupVersionKind) -> None:
        """Start the informer of a kind, if it has none. The call does not wait until the informer has its objects.

        Raises:
            ConfigurationError: the kind is not served.
        """
        if kind in self._followed:
            return
        mapping = await find_resource(self._client, kind)
        if mapping is None:
            raise ConfigurationError(f"failed to find resource referenced by paramKind: '{kind}'")
        if kind not in self._followed:
            informer = Informer(self._client, mapping.resource)
            task = self._background(f"informer/{mapping.resource.group_resource}", informer.run())
            self._followed[kind] = _Followed(mapping, informer, task)

    async def collect(self, kind: GroupVersionKind | None, ref: Object | None, namespace: str) -> list[Object | None]:
        """Return the parameter objects that a binding selects for a request.

        They are shallow copies with apiVersion and kind. The result is [None] if the policy has no paramKind or the
        binding has no paramRef. It is [] if no parameter matches and parameterNotFoundAction is not Deny.

        Args:
            kind: the paramKind of the policy, which must have been passed to `add_kind`; None if the policy has none.
            ref: the paramRef of the binding; None if the binding has none.
            namespace: the namespace of the request, "" for cluster-scoped objects. It is used if the paramKind is
                namespaced and `ref` has no namespace.

        Raises:
            ConfigurationError: the paramRef is invalid, its parameters are missing and it requires them, the informer
                has not read its objects within a second, or the API cannot be reached.
            StatusError: the API returned an error.
        """
        if kind is None or ref is None:
            return [None]
        mapping, informer, _ = self._followed[kind]
        param_namespace = ""
        if mapping.namespaced:
            param_namespace = ref.get("namespace") or namespace
            if not param_namespace:
                raise ConfigurationError(_NO_NAMESPACE)
        await self._wait_synced(kind, informer)
        if ref.get("namespace") and not mapping.namespaced:
            raise ConfigurationError(_NAMESPACE_GIVEN)
        params = (
            await self._get_named(mapping, informer, param_namespace, ref["name"])
            if ref.get("name")
            else _select(informer, param_namespace, ref)
        )
        if not params and ref.get("parameterNotFoundAction") == "Deny":
            raise ConfigurationError(_NONE_FOUND)
        return [{**param, "apiVersion": kind.api_version, "kind": kind.kind} for param in params]

    async def _wait_synced(self, kind: GroupVersionKind, informer: Informer) -> None:
        if informer.synced.is_set():
            return
        try:
            async with asyncio.timeout(_SYNC_SECONDS):
                await informer.synced.wait()
        except TimeoutError:
            kind_text = f"&ParamKind{{APIVersion:{kind.api_version},Kind:{kind.kind},}}"
            raise ConfigurationError(f"paramKind kind `{kind_text}` not yet synced to use for admission") from None

    async def _get_named(self, mapping: Mapping, informer: Informer, namespace: str, name: str) -> list[Object]:
        known = informer.get(namespace, name)
        if known is not None:
            return [known]
        try:  # the cache may lag behind a recent write
            return [await self._client.get(mapping.resource, namespace, name)]
        except StatusError as error:
            if error.code == 404:
                return []
            raise
        except (Unavailable, OSError) as error:
            raise ConfigurationError(str(error)) from None


def _select(informer: Informer, namespace: str, ref: Object) -> list[Object]:
    selector = from_label_selector(ref.get("selector"))
    return [
        obj
        for (where, _), obj in sorted(informer.objects.items())
        if (not namespace or where == namespace) and selector.matches(obj["metadata"].get("labels"))
    ]
