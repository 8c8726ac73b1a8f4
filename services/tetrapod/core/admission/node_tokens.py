"""The service account tokens that a node may request: for its own pods, and for the audiences that their volumes need.

Upstream: plugin/pkg/admission/noderestriction/admission.go, admitServiceAccount, validateNodeServiceAccountAudience.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.admission.kinds import CLAIMS, CSI_DRIVERS, PERSISTENT_VOLUMES, PODS
from tetrapod.core.admission.node_identity import node_of, synthetic
from tetrapod.generic.admission.interface import Attributes, forbidden
from tetrapod.generic.authorization.interface import Authorizer, Decision
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.status import StatusError, not_found

_UID_MISMATCH: Final = (
    "the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted "
    "and then recreated"
)
_MIGRATED: Final = {
    "gcePersistentDisk": "pd.csi.storage.gke.io",
    "awsElasticBlockStore": "ebs.csi.aws.com",
    "cinder": "cinder.csi.openstack.org",
    "azureDisk": "disk.csi.azure.com",
    "azureFile": "file.csi.azure.com",
    "vsphereVolume": "csi.vsphere.vmware.com",
    "portworxVolume": "pxd.portworx.com",
}
"""The CSI driver of each in-tree volume source. Upstream: k8s.io/csi-translation-lib/translate.go, inTreePlugins."""


class NodeTokens:
    """The check of TokenRequests that nodes make: which service account tokens a node may request."""

    def __init__(self, storages: StorageFactory, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._pods, self._claims = Lister(storages, PODS), Lister(storages, CLAIMS)
        self._volumes, self._drivers = Lister(storages, PERSISTENT_VOLUMES), Lister(storages, CSI_DRIVERS)

    async def check(self, attributes: Attributes, node: str) -> None:
        """Check that the requested token is bound to a pod of the node and has an audience that is allowed.

        Args:
            attributes: the create request.
            node: the name of the node that makes the request.

        Raises:
            StatusError: 403, it is not; 404, the pod does not exist.
        """
        spec = (attributes.object or {}).get("spec") or {}
        ref = spec.get("boundObjectRef")
        if not ref or ref.get("apiVersion") != "v1" or ref.get("kind") != "Pod" or not ref.get("name"):
            raise forbidden(attributes, "node requested token not bound to a pod")
        if not ref.get("uid"):
            raise forbidden(attributes, "node requested token with a pod binding without a uid")
        pod = await self._pods.get_live(attributes.namespace, ref["name"])
        if pod is None:
            raise not_found(GroupResource("", "pod"), ref["name"])
        if pod["metadata"]["uid"] != ref["uid"]:
            raise forbidden(attributes, _UID_MISMATCH.format(ref["uid"]))
        if node_of(pod) != node:
            raise forbidden(attributes, "node requested token bound to a pod scheduled on a different node")
        if not feature_gates.enabled("ServiceAccountNodeAudienceRestriction"):
            return
        if reason := await self._audience_error(attributes, pod, spec.get("audiences") or []):
            raise forbidden(attributes, reason)

    async def _audience_error(self, attributes: Attributes, pod: Object, audiences: list[str]) -> str:
        """Return why the node may not request a token with these audiences, or "" if it may.

        A node may request at most one audience: one that a volume of the pod needs, or one that the authorizer allows.

        Args:
            attributes: the create request.
            pod: the pod that the token is for.
            audiences: spec.audiences of the TokenRequest.
        """
        if len(audiences) > 1:
            return "node may only request 0 or 1 audiences"
        audience = audiences[0] if audiences else ""
        is_needed, errors = await self._needs(pod, audience)
        if is_needed:
            return ""
        if errors:
            return f"error validating audience {go_quote(audience)}: {aggregate_errors(errors)}"
        result = await self._authorizer.authorize(
            synthetic(attributes, "request-serviceaccounts-token-audience", audience, attributes.name)
        )
        user = attributes.user.name
        if result.decision is Decision.ALLOW:
            return ""
        if result.error:
            return f"error authorizing {user} to request tokens for audience {go_quote(audience)}: {result.error}"
        return f"{user} is not authorized to request tokens for audience {go_quote(audience)}"

    async def _needs(self, pod: Object, audience: str) -> tuple[bool, list[str]]:
        """Return whether a volume of the pod needs a token for the audience, and why volumes could not be checked.

        Returns:
            (True, []) or (False, error texts); a text for each volume with a missing claim, PersistentVolume or
                CSIDriver.
        """
        errors: list[str] = []
        for volume in (pod.get("spec") or {}).get("volumes") or ():
            if audience in _projected(volume):
                return True, []
            try:
                driver = await self._driver_of(pod, volume)
                if driver and await self._requests(driver, audience):
                    return True, []
            except StatusError as error:
                errors.append(error.message)
        return False, errors

    async def _driver_of(self, pod: Object, volume: Object) -> str:
        """Return the name of the CSI driver that mounts the pod's volume, or "" if the volume has none.

        Raises:
            StatusError: 404, the claim or its PersistentVolume is missing.
        """
        meta = pod["metadata"]
        if (volume.get("ephemeral") or {}).get("volumeClaimTemplate") is not None:
            return await self._driver_of_claim(meta["namespace"], f"{meta['name']}-{volume['name']}")
        if (claim := volume.get("persistentVolumeClaim")) is not None:
            return await self._driver_of_claim(meta["namespace"], claim.get("claimName") or "")
        return _driver(volume)

    async def _driver_of_claim(self, namespace: str, name: str) -> str:
        claim = await _required(self._claims, CLAIMS, namespace, name)
        volume = await _required(
            self._volumes, PERSISTENT_VOLUMES, "", (claim.get("spec") or {}).get("volumeName") or ""
        )
        return _driver(volume.get("spec") or {})

    async def _requests(self, driver: str, audience: str) -> bool:
        csi_driver = await _required(self._drivers, CSI_DRIVERS, "", driver)
        return any(
            (request.get("audience") or "") == audience
            for request in (csi_driver.get("spec") or {}).get("tokenRequests") or ()
        )


async def _required(lister: Lister, config: StorageConfig, namespace: str, name: str) -> Object:
    stored = await lister.find(namespace, name) if name else None
    if stored is None:
        # client-go's listers name the resource in the singular.
        raise not_found(GroupResource(config.api_version.rpartition("/")[0], config.kind.lower()), name)
    return stored


def _driver(source: Object) -> str:
    """Return the CSI driver of a volume source of a pod or a PersistentVolume, or "".

    For in-tree sources it is the driver that CSI migration uses.
    """
    if (csi := source.get("csi")) is not None:
        return str(csi.get("driver") or "")
    return next((driver for key, driver in _MIGRATED.items() if source.get(key) is not None), "")


def _projected(volume: Object) -> set[str]:
    """Return the audiences of the volume's projected tokens; "" means the API server's own audience."""
    sources = (volume.get("projected") or {}).get("sources") or ()
    return {
        token.get("audience") or "" for source in sources if (token := source.get("serviceAccountToken")) is not None
    }
