"""Strategies of PodCertificateRequest and its status. Upstream: pkg/registry/certificates/podcertificaterequest/strategy.go."""

from __future__ import annotations

from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.signers import GROUP, authorized_for_signer
from tetrapod.core.validation.pod_certificate_status import validate_status
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.status import ALL_METADATA, StatusStrategy
from tetrapod.machinery import field
from tetrapod.machinery.equality import same
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupKind, Object
from tetrapod.machinery.status import invalid


class PodCertificateStrategy(KindStrategy):
    """The strategy of PodCertificateRequest."""

    def field_label(self, version: str, label: str, value: str) -> tuple[str, str]:
        """Reject `metadata.namespace`, which upstream does not support for this kind."""
        if label == "metadata.namespace":
            raise ValueError(f"field label not supported: {label}")
        return super().field_label(version, label, value)


class PodCertificateStatusStrategy(StatusStrategy):
    """The strategy of `podcertificaterequests/status`, which only users with the verb `sign` on the signer may change."""

    def __init__(self, main: PodCertificateStrategy, authorizer: Authorizer | None) -> None:
        super().__init__(main, keep_metadata=ALL_METADATA, validate=validate_status)
        self._authorizer = authorizer

    async def begin_update(self, ctx: Context, new: Object, old: Object) -> None:
        """Raise StatusError if the user may not sign. An invalid status is left to validation, whose errors come first upstream."""
        if self._authorizer is None or same(new.get("status") or {}, old.get("status") or {}) or validate_status(new, old):
            return
        signer = (old.get("spec") or {}).get("signerName") or ""
        if await authorized_for_signer(self._authorizer, ctx.user, "sign", signer):
            return
        detail = f'User {go_quote(ctx.user.name)} is not permitted to "sign" for signer {go_quote(signer)}'
        errors = [field.forbidden("spec.signerName", detail)]
        raise invalid(GroupKind(GROUP, "PodCertificateRequest"), new["metadata"].get("name") or "", errors)
