"""The resource definition of secrets, with defaults, warnings and columns.

Upstream: pkg/registry/core/secret/strategy.go, pkg/api/secret.
"""

from __future__ import annotations

import base64
from typing import Final

from tetrapod.core.cells import AGE, NAME, age, name_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.v1.secrets import validation
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor

TABLE: Final = TableConvertor(
    (NAME, Column("Type"), Column("Data"), AGE),
    lambda obj: [name_of(obj), obj.get("type", ""), len(obj.get("data") or {}), age(obj)],
)


def definition() -> ResourceDefinition:
    """Return the resource definition of secrets: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        defaults=set_defaults,
        fields={"type": lambda o: o.get("type") or ""},
        validator=validation.validate,
        whole_update_validator=validation.validate_update,
        warnings=warnings,
    )
    return builtin("", "secrets", strategy, table=TABLE)


def set_defaults(obj: Object) -> None:
    """Move the entries of stringData, Base64-encoded, into data and set a missing type to Opaque, in place."""
    if (string_data := obj.pop("stringData", None)) is not None:
        data = obj.get("data") or {}
        for key, value in string_data.items():
            data[key] = base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()
        if data:
            obj["data"] = data
    if not obj.get("type"):
        obj["type"] = "Opaque"


def warnings(secret: Object, old: Object | None) -> list[str]:
    """Return a warning if certificate and key of a kubernetes.io/tls Secret are unreadable or do not match.

    `old` is not used: updates give the same warning.
    """
    if secret.get("type") != "kubernetes.io/tls":
        return []
    from tetrapod.core.v1.secrets import key_pairs  # imported for the first TLS Secret

    data = secret.get("data") or {}
    error = key_pairs.key_pair_error(
        base64.b64decode(data.get("tls.crt") or ""), base64.b64decode(data.get("tls.key") or "")
    )
    return [error] if error else []
