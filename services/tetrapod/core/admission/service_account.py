"""The admission plugin ServiceAccount.

It sets the service account of a pod, mounts its token and checks the pod's Secrets if the account requires it.

Upstream: plugin/pkg/admission/serviceaccount/admission.go.
"""

from __future__ import annotations

import asyncio
from typing import Final

from tetrapod.core.admission.kinds import SERVICE_ACCOUNTS
from tetrapod.core.admission.mirror_pods import refers_to_secrets
from tetrapod.core.admission.mountable_secrets import check_ephemeral, check_mountable
from tetrapod.core.admission.pod_plugin import name_error, object_of, spec_of
from tetrapod.core.v1.service_accounts import ENFORCE
from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.client.service_account import MOUNT
from tetrapod.generic.registry.generated_names import random_suffix
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object

DEFAULT: Final = "default"
MOUNT_PATH: Final = str(MOUNT)
VOLUME_PREFIX: Final = "kube-api-access-"
MIRROR: Final = "kubernetes.io/config.mirror"
_TOKEN_SECONDS: Final = 3607
"""An hour and 7 seconds: the unusual value identifies tokens that were mounted automatically."""
_ATTEMPTS: Final = 10
_WAIT_SECONDS: Final = 0.1


class ServiceAccount(Plugin):
    """The plugin that sets the service account of new pods, mounts its token and checks Secrets.

    The Secrets of new pods and of ephemeral containers are checked only if an annotation of the account requires it.
    """

    name = "ServiceAccount"
    operations = frozenset({"CREATE", "UPDATE"})

    def __init__(self, storages: StorageFactory) -> None:
        self._accounts = Lister(storages, SERVICE_ACCOUNTS)

    def handles(self, attributes: Attributes) -> bool:
        if attributes.resource.resource != "pods" or attributes.resource.group:
            return False
        if attributes.operation == "CREATE":
            return not attributes.subresource
        return attributes.subresource == "ephemeralcontainers"

    async def admit(self, attributes: Attributes) -> None:
        if attributes.operation != "CREATE":
            return
        pod, spec = object_of(attributes), spec_of(attributes)
        if MIRROR in (pod["metadata"].get("annotations") or {}):
            await offloaded(attributes.large, _check_mirror, attributes, spec)
            return
        if not spec.get("serviceAccountName"):
            spec["serviceAccountName"] = DEFAULT
        spec["serviceAccount"] = spec["serviceAccountName"]
        account = await self._account(attributes, spec["serviceAccountName"])
        if _automounts(account, spec):
            await offloaded(attributes.large, _mount_token, spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [{"name": s["name"]} for s in account["imagePullSecrets"] if s.get("name")]
        await self.validate(attributes)

    async def validate(self, attributes: Attributes) -> None:
        pod, spec = object_of(attributes), spec_of(attributes)
        if attributes.operation == "CREATE" and MIRROR in (pod["metadata"].get("annotations") or {}):
            await offloaded(attributes.large, _check_mirror, attributes, spec)
            return
        name = spec.get("serviceAccountName") or ""
        if not name:
            raise forbidden(
                attributes,
                f"no service account specified for pod {attributes.namespace}/{pod['metadata'].get('name') or ''}",
            )
        account = await self._account(attributes, name)
        if (account["metadata"].get("annotations") or {}).get(ENFORCE) not in ("true", "True", "TRUE", "t", "T", "1"):
            return
        if attributes.operation == "CREATE":
            await offloaded(attributes.large, check_mountable, attributes, account, spec)
        else:
            await offloaded(attributes.large, check_ephemeral, account, spec)

    async def _account(self, attributes: Attributes, name: str) -> Object:
        """Return the service account.

        The account `default` of a new namespace may not exist yet: its lookup is retried 10 times, every 0.1 seconds.

        Raises:
            StatusError: 403, the account does not exist.
        """
        namespace = attributes.namespace
        if error := name_error(name):
            raise forbidden(attributes, f"error looking up service account {namespace}/{name}: {error}")
        account = await self._accounts.find(namespace, name)
        for _ in range(_ATTEMPTS if name == DEFAULT else 0):
            if account is not None:
                break
            await asyncio.sleep(_WAIT_SECONDS)
            account = await self._accounts.get_live(namespace, name)
        if account is None:
            detail = f"serviceaccount {go_quote(name)} not found"
            raise forbidden(attributes, f"error looking up service account {namespace}/{name}: {detail}")
        return account


def _check_mirror(attributes: Attributes, spec: Object) -> None:
    """Raise StatusError (403) if a mirror pod refers to a service account, a Secret or a token volume.

    Mirror pods represent static pods, which cannot use API objects.
    """
    if spec.get("serviceAccountName"):
        raise forbidden(attributes, "a mirror pod may not reference service accounts")
    if refers_to_secrets(spec):
        raise forbidden(attributes, "a mirror pod may not reference secrets")
    for volume in spec.get("volumes") or ():
        for projected in (volume.get("projected") or {}).get("sources") or ():
            if projected.get("serviceAccountToken") is not None:
                raise forbidden(attributes, "a mirror pod may not use ServiceAccountToken volume projections")


def _automounts(account: Object, spec: Object) -> bool:
    """Return automountServiceAccountToken of the pod or, if unset, of the account; True if both leave it unset."""
    for holder in (spec, account):
        automount: bool | None = holder.get("automountServiceAccountToken")
        if automount is not None:
            return automount
    return True


def _mount_token(spec: Object) -> None:
    """Mount a service account token into each container that has no mount at `MOUNT_PATH`.

    The volume is added to the pod spec, which is modified. An existing volume whose name begins with `kube-api-access-`
    is used instead.
    """
    volumes = spec.get("volumes") or []
    existing = next((v["name"] for v in volumes if (v.get("name") or "").startswith(VOLUME_PREFIX)), None)
    name = existing or VOLUME_PREFIX + random_suffix()
    mounted = False
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        mounts = container.get("volumeMounts") or []
        if not any(mount.get("mountPath") == MOUNT_PATH for mount in mounts):
            container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}]
            mounted = True
    if mounted and existing is None:
        spec["volumes"] = [*volumes, _token_volume(name)]


def _token_volume(name: str) -> Object:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "name": name,
        "projected": {
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [namespace]}},
            ],
            "defaultMode": 420,
        },
    }
