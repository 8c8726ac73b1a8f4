"""The definition, the strategies and the columns of PodCertificateRequests.

Upstream: pkg/registry/certificates/podcertificaterequest/strategy.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tetrapod.core.cells import NAME, NONE, name_of, spec_of, status_of
from tetrapod.core.certificates.pod_certificate_requests import validation as pod_certificates
from tetrapod.core.certificates.pod_certificate_requests.status_validation import validate_status
from tetrapod.core.certificates.signers import GROUP, authorized_for_signer
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import ALL_METADATA, StatusStrategy
from tetrapod.machinery import field
from tetrapod.machinery.equality import same
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupKind, Object
from tetrapod.machinery.status import invalid
from tetrapod.machinery.table import Column, TableConvertor


def _spec_field(key: str) -> Callable[[Object], str]:
    return lambda obj: (obj.get("spec") or {}).get(key) or ""


def definition(authorizer: Authorizer | None) -> ResourceDefinition:
    """Return the resource definition of PodCertificateRequests: versions, strategy, subresources and columns.

    Args:
        authorizer: authorizes signers to change the status; None skips the check.
    """
    strategy = PodCertificateStrategy(
        validator=pod_certificates.validate,
        whole_update_validator=pod_certificates.validate_update,
        has_status=True,
        allow_unconditional_update=False,
        fields={f"spec.{key}": _spec_field(key) for key in ("signerName", "podName", "nodeName")},
    )
    return builtin(
        "certificates.k8s.io",
        "podcertificaterequests",
        strategy,
        versions=("v1", "v1beta1"),
        storage_version="v1beta1",
        table=TABLE,
        subresources={"status": PodCertificateStatusStrategy(strategy, authorizer)},
        convert=convert,
        missing_fields={"v1": [("spec", name) for name in pod_certificates.ONLY_V1BETA1]},
    )


def convert(obj: Object, version: str) -> Object:
    """Return a copy of a PodCertificateRequest in `version`, which may share nested objects.

    v1 does not have the fields pkixPublicKey and proofOfPossession of v1beta1. In v1beta1 they are always present, with
    null if they are unset.
    """
    converted = {**obj, "apiVersion": f"{GROUP}/{version}"}
    if isinstance(spec := obj.get("spec"), dict):
        if version == "v1":
            converted["spec"] = {key: value for key, value in spec.items() if key not in pod_certificates.ONLY_V1BETA1}
        else:
            converted["spec"] = {**spec, **{key: spec.get(key) for key in pod_certificates.ONLY_V1BETA1}}
    return converted


class PodCertificateStrategy(KindStrategy):
    """The strategy of PodCertificateRequests, which does not support the field selector `metadata.namespace`."""

    def field_label(self, version: str, label: str, value: str) -> tuple[str, str]:
        """Return label and value of a field selector's term, which must not be about `metadata.namespace`.

        Upstream does not support that label for this kind.

        Raises:
            ValueError: the label is not supported.
        """
        if label == "metadata.namespace":
            raise ValueError(f"field label not supported: {label}")
        return super().field_label(version, label, value)


class PodCertificateStatusStrategy(StatusStrategy):
    """The strategy of `podcertificaterequests/status`.

    Only users with the verb `sign` on the signer may change the status.

    Args:
        main: the strategy of the requests themselves.
        authorizer: decides about the verb `sign`; None skips the check.
    """

    def __init__(self, main: PodCertificateStrategy, authorizer: Authorizer | None) -> None:
        super().__init__(main, keep_metadata=ALL_METADATA, validate=validate_status)
        self._authorizer = authorizer

    async def begin_update(self, ctx: Context, new: Object, old: Object) -> None:
        """Reject a changed status if the user does not have the verb `sign` on the signer.

        An unchanged status needs no permission. An invalid status is left to validation, whose errors come first
        upstream. Without an authorizer nothing is checked.

        Raises:
            StatusError: 422, the user does not have the permission.
        """
        if (
            self._authorizer is None
            or same(new.get("status") or {}, old.get("status") or {})
            or validate_status(new, old)
        ):
            return
        signer = (old.get("spec") or {}).get("signerName") or ""
        if await authorized_for_signer(self._authorizer, ctx.user, "sign", signer):
            return
        detail = f'User {go_quote(ctx.user.name)} is not permitted to "sign" for signer {go_quote(signer)}'
        errors = [field.forbidden("spec.signerName", detail)]
        raise invalid(GroupKind(GROUP, "PodCertificateRequest"), new["metadata"].get("name") or "", errors)


def _row(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    decided = [
        c["type"] for c in status_of(obj).get("conditions") or () if c.get("type") in ("Issued", "Denied", "Failed")
    ]
    names = [spec.get(key) or "" for key in ("podName", "serviceAccountName", "nodeName", "signerName")]
    annotations = spec.get("unverifiedUserAnnotations") or {}
    return [
        name_of(obj),
        *names,
        decided[-1] if decided else "Pending",
        ",".join(f"{key}={annotations[key]}" for key in sorted(annotations)) or NONE,
    ]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("PodName"),
        Column("ServiceAccountName"),
        Column("NodeName"),
        Column("SignerName"),
        Column("State"),
        Column("UnverifiedUserAnnotations"),
    ),
    _row,
)
