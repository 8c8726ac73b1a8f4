"""Accounts with `kubernetes.io/enforce-mountable-secrets`: their pods see no secret but those that the account lists.

Upstream: limitSecretReferences of plugin/pkg/admission/serviceaccount/admission.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tetrapod.generic.admission.interface import Attributes, forbidden
from tetrapod.machinery.field import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import bad_request


def check_mountable(attributes: Attributes, account: Object, spec: Object) -> None:
    """
    Raises:
        StatusError: 403.
    """
    allowed = {ref.get("name") for ref in account.get("secrets") or ()}
    name = account["metadata"]["name"]
    because = f"is not allowed because service account {name} does not reference that secret"
    for volume in spec.get("volumes") or ():
        if (source := volume.get("secret")) is not None and source.get("secretName") not in allowed:
            raise forbidden(attributes, f"volume with secret.secretName={go_quote(source.get('secretName') or '')} {because}")
    for kind, key in (("init container", "initContainers"), ("container", "containers")):
        for text in _foreign(kind, spec.get(key) or (), allowed):
            raise forbidden(attributes, f"{text} {because}")
    pulls = {ref.get("name") for ref in account.get("imagePullSecrets") or ()}
    for i, ref in enumerate(spec.get("imagePullSecrets") or ()):
        if ref.get("name") not in pulls:
            shown = f"imagePullSecrets[{i}].name={go_quote(ref.get('name') or '')}"
            text = f"is not allowed because service account {name} does not reference that imagePullSecret"
            raise forbidden(attributes, f"{shown} {text}")


def check_ephemeral(account: Object, spec: Object) -> None:
    """The same for ephemeral containers; upstream answers without a reason here.

    Raises:
        StatusError: 400.
    """
    allowed = {ref.get("name") for ref in account.get("secrets") or ()}
    for text in _foreign("ephemeral container", spec.get("ephemeralContainers") or (), allowed):
        name = account["metadata"]["name"]
        raise bad_request(f"{text} is not allowed because service account {name} does not reference that secret")


def _foreign(kind: str, containers: Iterable[Object], allowed: set[str | None]) -> Iterator[str]:
    """What refers to a secret that is not the account's."""
    for container in containers:
        of = f"{kind} {container.get('name') or ''} with"
        for variable in container.get("env") or ():
            ref = (variable.get("valueFrom") or {}).get("secretKeyRef")
            if ref is not None and ref.get("name") not in allowed:
                yield f"{of} envVar {variable.get('name') or ''} referencing secret.secretName={go_quote(ref.get('name') or '')}"
        for source in container.get("envFrom") or ():
            ref = source.get("secretRef")
            if ref is not None and ref.get("name") not in allowed:
                yield f"{of} envFrom referencing secret.secretName={go_quote(ref.get('name') or '')}"
