"""Tests of the resource that a stored value belongs to by its key, which decides how it is encrypted."""

from __future__ import annotations

import pytest

from tetrapod.generic.storage.backup.sealing import resource_of
from tetrapod.generic.storage.config import UNUSUAL_PLACES
from tetrapod.machinery.gvk import GroupResource


@pytest.mark.parametrize(
    ("key", "resource"),
    [
        ("secrets/default/a", "secrets"),
        ("deployments/default/a", "deployments.apps"),
        ("services/specs/default/a", "services"),
        ("services/endpoints/default/a", "endpoints"),
        ("minions/a", "nodes"),
        ("controllers/default/a", "replicationcontrollers"),
        ("ingress/default/a", "ingresses.networking.k8s.io"),
        ("ingressclasses/a", "ingressclasses.networking.k8s.io"),
        ("events/default/a", "events"),
        ("example.com/widgets/default/a", "widgets.example.com"),
        (
            "apiextensions.k8s.io/customresourcedefinitions/a.example.com",
            "customresourcedefinitions.apiextensions.k8s.io",
        ),
        ("apiregistration.k8s.io/apiservices/v1.apps", "apiservices.apiregistration.k8s.io"),
    ],
)
def test_a_key_belongs_to_its_resource(key: str, resource: str) -> None:
    name, _, group = resource.partition(".")
    assert resource_of(key) == GroupResource(group, name)


@pytest.mark.parametrize("key", ["masterleases/10.0.0.1", "peerserverleases/a", "nobody/knows"])
def test_internal_keys_belong_to_no_resource(key: str) -> None:
    assert resource_of(key) is None


def test_every_unusual_place_is_found() -> None:
    for place, resource in UNUSUAL_PLACES.items():
        assert resource_of(f"{place}/default/a") == resource
