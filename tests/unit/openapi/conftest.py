"""Fixtures with the definitions of every built-in resource, without storage."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.generic.openapi.source import BuiltinSource
from tetrapod.generic.openapi.v3 import text_document, version_document
from tetrapod.generic.registry.definition import ResourceDefinition, Subresource
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery import types
from tetrapod.machinery.gvk import GroupVersion
from tetrapod.machinery.types.resources import ResourceFacts

RETURN_DELETED = frozenset(
    [
        "csidrivers",
        "csinodes",
        "deviceclasses",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "resourceclaims",
        "resourceclaimtemplates",
        "resourcequotas",
        "resourceslices",
        "serviceaccounts",
        "services",
        "storageclasses",
        "volumeattachments",
        "volumeattributesclasses",
    ]
)


class Returning(Strategy):
    return_deleted_object = True


def declare(facts: ResourceFacts) -> ResourceDefinition:
    return ResourceDefinition(
        group=facts.kind.group,
        resource=facts.name,
        kind=facts.kind.kind,
        singular=facts.singular,
        namespaced=facts.namespaced,
        versions=(facts.kind.version,),
        storage_version=facts.kind.version,
        storage_prefix=facts.name,
        verbs=facts.verbs,
        schema=lambda version: types.schema_for(facts.kind),
        strategy=Returning() if facts.name in RETURN_DELETED else Strategy(),
        subresources=tuple(Subresource(sub.name, sub.verbs, sub.kind) for sub in facts.subresources),
    )


class Declarations:
    generation = 1

    def group_versions(self) -> list[GroupVersion]:
        return [GroupVersion(group.name, version) for group in types.groups() for version in group.versions]

    def definitions(self, group: str, version: str) -> list[ResourceDefinition]:
        return [declare(facts) for facts in types.resource_facts(group, version)]


@pytest.fixture(scope="session")
def source() -> BuiltinSource:
    def jwks() -> Any:
        return text_document(
            "/openid/v1/jwks/", "getServiceAccountIssuerOpenIDKeyset", "application/jwk-set+json", "keys"
        )

    def configuration() -> Any:
        return text_document(
            "/.well-known/openid-configuration/",
            "getServiceAccountIssuerOpenIDConfiguration",
            "application/json",
            "configuration",
        )

    extra = {"version": version_document, "openid/v1/jwks": jwks, ".well-known/openid-configuration": configuration}
    return BuiltinSource(Declarations(), extra)
