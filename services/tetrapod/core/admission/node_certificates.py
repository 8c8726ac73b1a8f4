"""The certificates that a node may request: for itself, and for the pods that run on it.

Upstream: plugin/pkg/admission/noderestriction/admission.go, admitCSR, admitPodCertificateRequest.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.admission.kinds import NODES, PODS, SERVICE_ACCOUNTS
from tetrapod.core.admission.mirror_pods import MIRROR
from tetrapod.core.admission.node_identity import node_of, synthetic
from tetrapod.core.certificates.certificate_signing_requests.validation import parse_request
from tetrapod.generic.admission.interface import Attributes, forbidden
from tetrapod.generic.authorization.interface import Authorizer, Decision
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError

_NODE_SIGNERS: Final = frozenset({"kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"})


def check_signing_request(attributes: Attributes) -> None:
    """Check that the CSR which a node creates for a kubelet signer has the node's user name as common name.

    Requests for other signers and operations other than create pass.

    Raises:
        StatusError: 403, the common name differs or the request cannot be parsed.
    """
    spec = (attributes.object or {}).get("spec") or {}
    if attributes.operation != "CREATE" or spec.get("signerName") not in _NODE_SIGNERS:
        return
    if _common_name(attributes, spec.get("request") or "") != attributes.user.name:
        raise forbidden(attributes, f"can only create a node CSR with CN={attributes.user.name}")


def _common_name(attributes: Attributes, request: str) -> str:
    from cryptography.x509.oid import NameOID

    try:
        names = parse_request(request).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except ValueError as error:
        raise forbidden(attributes, f"unable to parse csr: {error}") from None
    return str(names[-1].value) if names else ""


class NodeCertificateRequests:
    """The check of the PodCertificateRequests that a node creates, against its pods and their service accounts.

    Errors that a stale cache could cause have code 500 and no reason, as upstream, so that kubelets retry.
    """

    def __init__(self, storages: StorageFactory, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._nodes, self._pods = Lister(storages, NODES), Lister(storages, PODS)
        self._accounts = Lister(storages, SERVICE_ACCOUNTS)

    async def check(self, attributes: Attributes, node: str) -> None:
        """Check that a PodCertificateRequest is for a pod of the node and for a signer that the pod may use.

        The pod may use the signers that its volumes name, and those that the authorizer allows.

        Args:
            attributes: the create request.
            node: the name of the node that makes the request.

        Raises:
            StatusError: 403 if the node may not create it; 500 if an object is missing or its UID differs.
        """
        if attributes.operation != "CREATE":
            raise forbidden(attributes, f"unexpected operation {attributes.operation}")
        if attributes.subresource:
            raise forbidden(attributes, f"unexpected subresource {attributes.subresource}")
        spec = (attributes.object or {}).get("spec") or {}
        await self._check_node(attributes, spec, node)
        pod = await self._checked_pod(attributes, spec)
        await self._check_account(attributes, spec, pod)
        await self._check_signer(attributes, spec, pod)

    async def _check_node(self, attributes: Attributes, spec: Object, node: str) -> None:
        name, uid = spec.get("nodeName") or "", spec.get("nodeUID") or ""
        if name != node:
            message = (
                f"PodCertificateRequest.Spec.NodeName={go_quote(name)}, which is not the requesting node "
                f"{go_quote(node)}"
            )
            raise forbidden(attributes, message)
        stored = await self._nodes.find("", name)
        if stored is None:
            raise _missing("node", name, name)
        if (actual := stored["metadata"]["uid"]) != uid:
            raise _failed(
                f"PodCertificateRequest for pod {_pod_name(attributes, spec)} names node UID {go_quote(uid)},"
                f" inconsistent with the running node ({go_quote(actual)})"
            )

    async def _checked_pod(self, attributes: Attributes, spec: Object) -> Object:
        quoted, uid, node = _pod_name(attributes, spec), spec.get("podUID") or "", spec.get("nodeName") or ""
        pod = await self._pods.find(attributes.namespace, spec.get("podName") or "")
        if pod is None:
            raise _missing("pod", f"{attributes.namespace}/{spec.get('podName') or ''}", spec.get("podName") or "")
        if (actual := pod["metadata"]["uid"]) != uid:
            raise _failed(
                f"PodCertificateRequest for pod {quoted} contains pod UID ({go_quote(uid)})"
                f" which differs from running pod {go_quote(actual)}"
            )
        if node_of(pod) != node:
            raise forbidden(
                attributes, f"pod {quoted} is not running on node {go_quote(node)} named in the PodCertificateRequest"
            )
        if MIRROR in (pod["metadata"].get("annotations") or {}):
            raise forbidden(attributes, f"pod {quoted} is a mirror pod")
        return pod

    async def _check_account(self, attributes: Attributes, spec: Object, pod: Object) -> None:
        quoted, name, uid = (
            _pod_name(attributes, spec),
            spec.get("serviceAccountName") or "",
            spec.get("serviceAccountUID") or "",
        )
        running = (pod.get("spec") or {}).get("serviceAccountName") or ""
        if name != running:
            raise forbidden(
                attributes,
                f"PodCertificateRequest for pod {quoted} contains serviceAccountName ({go_quote(name)})"
                f" that differs from running pod ({go_quote(running)})",
            )
        account = await self._accounts.find(attributes.namespace, name)
        if account is None:
            raise _missing("service account", f"{attributes.namespace}/{name}", name)
        if (actual := account["metadata"]["uid"]) != uid:
            raise _failed(
                f"PodCertificateRequest for pod {quoted} names service account UID {go_quote(uid)},"
                f" which differs from the running service account ({go_quote(actual)})"
            )

    async def _check_signer(self, attributes: Attributes, spec: Object, pod: Object) -> None:
        """Check that a volume of the pod names the signer, or else that the authorizer allows the node to use it.

        The authorizer is asked about the signer's name with colons for slashes, because RBAC resources have no slashes.

        Raises:
            StatusError: 403, neither is the case.
        """
        signer = spec.get("signerName") or ""
        if signer in _mounted_signers(pod):
            return
        authorization = synthetic(
            attributes,
            "request-serviceaccounts-podcertificate-signer",
            signer.replace("/", ":"),
            spec.get("serviceAccountName") or "",
        )
        result = await self._authorizer.authorize(authorization)
        if result.decision is Decision.ALLOW:
            return
        if result.error:
            problem = f"error authorizing {attributes.user.name} to request podcertificaterequests"
            raise forbidden(attributes, f"{problem} for signer {go_quote(signer)}: {result.error}")
        quoted = _pod_name(attributes, spec)
        raise forbidden(
            attributes, f"pod {quoted} does not mount a podCertificate projected volume for signer {go_quote(signer)}"
        )


def _pod_name(attributes: Attributes, spec: Object) -> str:
    return go_quote(f"{attributes.namespace}/{spec.get('podName') or ''}")


def _mounted_signers(pod: Object) -> set[str]:
    return {
        certificate.get("signerName") or ""
        for volume in (pod.get("spec") or {}).get("volumes") or ()
        for source in (volume.get("projected") or {}).get("sources") or ()
        if (certificate := source.get("podCertificate")) is not None
    }


def _missing(kind: str, full_name: str, name: str) -> StatusError:
    """Return the error 500 for a node, pod or service account that does not exist, with upstream's wrapped text.

    As client-go's listers, the text names the resource in the singular.
    """
    resource = kind.replace(" ", "")
    return _failed(
        f"while retrieving {kind} {go_quote(full_name)} named in the PodCertificateRequest: {resource} "
        f"{go_quote(name)} not found"
    )


def _failed(message: str) -> StatusError:
    return StatusError(500, "", message)
