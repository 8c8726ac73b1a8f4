"""The approval annotation that definitions in groups below k8s.io and kubernetes.io need.

Upstream: apiextensions-apiserver/pkg/apihelpers/helpers.go, GetAPIApprovalState.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tetrapod.machinery.field import FieldError, invalid, required
from tetrapod.machinery.golang.urls import BadUrl, GoUrl, parse_request_uri
from tetrapod.machinery.gvk import Object

ANNOTATION: Final = "api-approved.kubernetes.io"
_SEE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"
_PATH: Final = f"metadata.annotations[{ANNOTATION}]"


class Approval(NamedTuple):
    """The verdict on the annotation api-approved.kubernetes.io of a definition.

    Attributes:
        state: "missing", "bypassed", "approved" or "invalid".
        reason: the explanation, for errors and for the condition KubernetesAPIApprovalPolicyConformant.
    """

    state: str
    reason: str


def is_protected(group: str) -> bool:
    """Return whether a group is reserved for the Kubernetes community: k8s.io, kubernetes.io and groups below them."""
    return group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))


def approval(crd: Object) -> Approval:
    """Return the approval state of a definition by its annotation, whether or not its group needs approval.

    A URL means "approved", a text that starts with "unapproved" means "bypassed", an empty text "missing", and any
    other text "invalid".
    """
    text = (crd["metadata"].get("annotations") or {}).get(ANNOTATION) or ""
    if not text:
        return Approval("missing", f'protected groups must have approval annotation "{ANNOTATION}", {_SEE}')
    if text.startswith("unapproved"):
        return Approval("bypassed", f'not approved: "{text}"')
    try:
        url = parse_request_uri(text)
    except BadUrl:
        url = GoUrl()
    if url.scheme and url.host:
        return Approval("approved", f"approved in {text}")
    reason = (
        f'protected groups must have approval annotation "{ANNOTATION}" with either a URL or a reason starting with '
        '"unapproved"'
    )
    return Approval("invalid", f"{reason}, {_SEE}")


def validate_approval(new: Object, old: Object | None) -> list[FieldError]:
    """Return the errors of the approval annotation, which protected groups need.

    Args:
        old: the stored definition; None on create. An update that does not change the state causes no error.
    """
    if not is_protected(new["spec"].get("group") or ""):
        return []
    current = approval(new)
    if old is not None and approval(old).state == current.state:
        return []
    if current.state == "invalid":
        return [invalid(_PATH, new["metadata"]["annotations"][ANNOTATION], current.reason)]
    return [required(_PATH, current.reason)] if current.state == "missing" else []
