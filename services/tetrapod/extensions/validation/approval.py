"""The approval that groups below k8s.io and kubernetes.io need (upstream: pkg/apihelpers/helpers.go, GetAPIApprovalState)."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import urlsplit

from tetrapod.machinery.field import FieldError, invalid, required
from tetrapod.machinery.gvk import Object

ANNOTATION: Final = "api-approved.kubernetes.io"
_SEE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"
_PATH: Final = f"metadata.annotations[{ANNOTATION}]"


class Approval(NamedTuple):
    """`state` is missing, bypassed, approved or invalid."""

    state: str
    reason: str


def is_protected(group: str) -> bool:
    return group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))


def approval(crd: Object) -> Approval:
    text = (crd["metadata"].get("annotations") or {}).get(ANNOTATION) or ""
    if not text:
        return Approval("missing", f'protected groups must have approval annotation "{ANNOTATION}", {_SEE}')
    if text.startswith("unapproved"):
        return Approval("bypassed", f'not approved: "{text}"')
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme and parts.netloc:
        return Approval("approved", f"approved in {text}")
    why = f'protected groups must have approval annotation "{ANNOTATION}" with either a URL or a reason starting with "unapproved"'
    return Approval("invalid", f"{why}, {_SEE}")


def validate_approval(new: Object, old: Object | None) -> list[FieldError]:
    if not is_protected(new["spec"].get("group") or ""):
        return []
    found = approval(new)
    if old is not None and approval(old).state == found.state:
        return []
    if found.state == "invalid":
        return [invalid(_PATH, new["metadata"]["annotations"][ANNOTATION], found.reason)]
    return [required(_PATH, found.reason)] if found.state == "missing" else []
