"""The definition and the columns of CertificateSigningRequests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, NONE, age, name_of, spec_of, status_of
from tetrapod.core.certificates.certificate_signing_requests.strategy import (
    ApprovalStrategy,
    SigningRequestStrategy,
    SigningStatusStrategy,
)
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.filtered_store import FilteredStore
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor


def definition() -> ResourceDefinition:
    """Return the resource definition of CertificateSigningRequests: versions, strategy, subresources and columns."""
    strategy = SigningRequestStrategy()
    definition = builtin(
        "certificates.k8s.io",
        "certificatesigningrequests",
        strategy,
        table=TABLE,
        subresources={"approval": ApprovalStrategy(strategy), "status": SigningStatusStrategy(strategy)},
    )
    return replace(definition, store=SigningRequestStore)


class SigningRequestStore(FilteredStore):
    """A store that removes an empty certificate from the objects that it returns."""

    def may_contain_hidden(self, item: bytes) -> bool:
        return b'"certificate":""' in item

    def hide(self, obj: Object) -> bool:
        is_empty = status_of(obj).get("certificate") == ""
        if is_empty:
            del obj["status"]["certificate"]
        return is_empty


def _csr_condition(obj: Object) -> str:
    conditions = status_of(obj).get("conditions") or []
    types = {c.get("type") for c in conditions}
    text = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    if "Failed" in types:
        text += ",Failed"
    return text + ",Issued" if status_of(obj).get("certificate") else text


def _row(obj: Object) -> list[Any]:
    from tetrapod.machinery.golang.durations import human_duration

    spec = spec_of(obj)
    seconds = spec.get("expirationSeconds")
    return [
        name_of(obj),
        age(obj),
        spec.get("signerName") or NONE,
        spec.get("username", ""),
        NONE if seconds is None else human_duration(seconds),
        _csr_condition(obj),
    ]


TABLE: Final = TableConvertor(
    (
        NAME,
        AGE,
        Column("SignerName"),
        Column("Requestor"),
        Column("RequestedDuration"),
        Column("Condition"),
    ),
    _row,
)
