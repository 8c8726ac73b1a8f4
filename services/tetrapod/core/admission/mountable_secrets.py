"""The check of the Secrets of pods whose service account has `kubernetes.io/enforce-mountable-secrets`.

Such pods may use only the Secrets that the account lists.

Upstream: plugin/pkg/admission/serviceaccount/admission.go, limitSecretReferences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tetrapod.generic.admission.interface import Attributes, forbidden
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import bad_request


def check_mountable(attributes: Attributes, account: Object, spec: Object) -> None:
    """Check that a new pod uses only Secrets and image pull secrets that its service account lists.

    Raises:
        StatusError: 403, the pod uses a Secret that the account does not list.
    """
    allowed = {ref.get("name") for ref in account.get("secrets") or ()}
    name = account["metadata"]["name"]
    reason = f"is not allowed because service account {name} does not reference that secret"
    for volume in spec.get("volumes") or ():
        if (source := volume.get("secret")) is not None and source.get("secretName") not in allowed:
            raise forbidden(
                attributes, f"volume with secret.secretName={go_quote(source.get('secretName') or '')} {reason}"
            )
    for kind, key in (("init container", "initContainers"), ("container", "containers")):
        for text in _foreign(kind, spec.get(key) or (), allowed):
            raise forbidden(attributes, f"{text} {reason}")
    allowed_pulls = {ref.get("name") for ref in account.get("imagePullSecrets") or ()}
    for i, ref in enumerate(spec.get("imagePullSecrets") or ()):
        if ref.get("name") not in allowed_pulls:
            reference = f"imagePullSecrets[{i}].name={go_quote(ref.get('name') or '')}"
            text = f"is not allowed because service account {name} does not reference that imagePullSecret"
            raise forbidden(attributes, f"{reference} {text}")


def check_ephemeral(account: Object, spec: Object) -> None:
    """Check that the environment of ephemeral containers uses only Secrets that the service account lists.

    Raises:
        StatusError: 400, a container uses a Secret that the account does not list. As upstream, the code is not 403.
    """
    allowed = {ref.get("name") for ref in account.get("secrets") or ()}
    for text in _foreign("ephemeral container", spec.get("ephemeralContainers") or (), allowed):
        name = account["metadata"]["name"]
        raise bad_request(f"{text} is not allowed because service account {name} does not reference that secret")


def _foreign(kind: str, containers: Iterable[Object], allowed: set[str | None]) -> Iterator[str]:
    """Yield a description of each reference to a Secret that is not in `allowed`, from the containers' env and envFrom.

    Args:
        kind: the kind of container, for the descriptions, such as "init container".
        containers: the containers.
        allowed: the names of the Secrets that the service account lists.
    """
    for container in containers:
        subject = f"{kind} {container.get('name') or ''} with"
        for variable in container.get("env") or ():
            ref = (variable.get("valueFrom") or {}).get("secretKeyRef")
            if ref is not None and ref.get("name") not in allowed:
                yield (
                    f"{subject} envVar {variable.get('name') or ''} referencing "
                    f"secret.secretName={go_quote(ref.get('name') or '')}"
                )
        for source in container.get("envFrom") or ():
            ref = source.get("secretRef")
            if ref is not None and ref.get("name") not in allowed:
                yield f"{subject} envFrom referencing secret.secretName={go_quote(ref.get('name') or '')}"
